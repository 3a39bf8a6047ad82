/* Runs the library of an FMU 3.0 for co-simulation without effort and prints its outputs: LIBRARY TOKEN STEPS STEP REFERENCE... */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef _WIN32
#include <windows.h>
#define LOAD(path) ((void *)LoadLibraryA(path))
#define FIND(library, name) ((void *)GetProcAddress((HMODULE)(library), name))
#else
#include <dlfcn.h>
#define LOAD(path) dlopen(path, RTLD_NOW)
#define FIND(library, name) dlsym(library, name)
#endif

typedef void *Instance;
typedef void (*Log)(void *, int, const char *, const char *);
typedef Instance (*Make)(const char *, const char *, const char *, _Bool, _Bool, _Bool, _Bool, const uint32_t *, size_t,
                         void *, Log, void *);
typedef int (*Enter)(Instance, _Bool, double, double, _Bool, double);
typedef int (*Plain)(Instance);
typedef int (*Step)(Instance, double, double, _Bool, _Bool *, _Bool *, _Bool *, double *);
typedef int (*Get)(Instance, const uint32_t *, size_t, double *, size_t);

static void told(void *environment, int status, const char *category, const char *message) {
  (void)environment, (void)status, (void)category;
  fprintf(stderr, "%s\n", message);
}

int main(int count, char **words) {
  void *library = LOAD(words[1]);
  if (!library) return 10;
  Make make = (Make)FIND(library, "fmi3InstantiateCoSimulation");
  Enter enter = (Enter)FIND(library, "fmi3EnterInitializationMode");
  Plain leave = (Plain)FIND(library, "fmi3ExitInitializationMode");
  Step step = (Step)FIND(library, "fmi3DoStep");
  Get get = (Get)FIND(library, "fmi3GetFloat64");
  if (!make || !enter || !leave || !step || !get) return 11;
  Instance unit = make("one", words[2], "", 0, 0, 0, 0, NULL, 0, NULL, told, NULL);
  if (!unit || enter(unit, 0, 0.0, 0.0, 0, 0.0) || leave(unit)) return 12;
  const int steps = atoi(words[3]);
  const double h = atof(words[4]);
  for (int k = 0; k < steps; k++) {
    _Bool event, end, early;
    double last;
    if (step(unit, k * h, h, 1, &event, &end, &early, &last)) return 13;
  }
  for (int k = 5; k < count; k++) {
    const uint32_t reference = (uint32_t)atoi(words[k]);
    double value;
    if (get(unit, &reference, 1, &value, 1)) return 14;
    printf("%.17g\n", value);
  }
  return 0;
}
