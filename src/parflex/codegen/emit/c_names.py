"""Names that a generated function or file cannot have: those of C, of C++ and of what programs are linked with."""

from __future__ import annotations

KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try
typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
MATHS = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor fma
fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint
nextafter nexttoward pow remainder remquo rint round roundeven scalb scalbln scalbn sin sincos sinh sqrt tan tanh tgamma
trunc drem finite gamma significand j0 j1 jn y0 y1 yn
"""
MACROS = """
fpclassify isfinite isgreater isgreaterequal isinf isless islessequal islessgreater isnan isnormal isunordered signbit
signgam HUGE_VAL HUGE_VALF HUGE_VALL INFINITY NAN M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI
M_2_SQRTPI M_SQRT2 M_SQRT1_2 linux unix
"""
SYSTEM = """
main abort abs accept access alarm asctime assert atexit atof atoi atol bcmp bcopy bind brk bsearch bzero calloc chdir
chmod chown clearerr clock close connect ctime difftime div dup dup2 environ erand48 errno execl execv execve exit
fclose feof ferror fflush ffs fgetc fgets fileno fopen fork fprintf fputc fputs fread free freopen fscanf fseek ftell
fwrite getc getchar getenv getpid gets gmtime index initstate ioctl isalnum isalpha isdigit isspace kill labs ldiv link
listen localtime longjmp lseek malloc memccpy memchr memcmp memcpy memmove memset mkdir mktime mmap nanosleep nice open
pause perror pipe poll printf putc putchar puts qsort raise rand random read realloc recv remove rename rewind rindex
rmdir scanf select send setjmp setstate shutdown sigaction signal sleep snprintf socket sprintf srand srandom sscanf
stat stderr stdin stdout stpcpy strcat strchr strcmp strcpy strdup strftime strlen strncat strncmp strncpy strstr strtod
strtok strtol swab sync system tell time times tmpfile tolower toupper truncate umask ungetc unlink usleep vfprintf
vprintf wait write complex ctype fenv float_h inttypes iso646 limits locale math stdarg stdbool stddef stdint stdio
stdlib string tgmath wchar wctype threads unistd
"""

TAKEN = frozenset(
    [*KEYWORDS.split(), *MACROS.split(), *SYSTEM.split()]
    + [f"{word}{kind}" for word in MATHS.split() for kind in ("", "f", "l")]
)
