"""A planar arm with options for each joint."""

from support.robots import robot_file


def arm(keys: str, shoulder: bool = True, elbow: bool = True) -> str:
    """Return the file of a planar arm of two links with an element from the wall to its hand."""
    first, second = robot_file("arm-at-wall").read_text().split("actuated = true", 1)
    text = f"{first}actuated = {str(shoulder).lower()}" + second.replace("true", str(elbow).lower())
    return text + '[[element]]\nname = "part"\nbetween = ["wall", "hand"]\n' + keys.replace("; ", "\n") + "\n"
