"""Bodies: what carries mass. The recursion asks a body for its wrench and its inertia, whatever its kind."""

from parflex.bodies import sections
from parflex.bodies.body import Body
from parflex.bodies.elastic_body import ElasticBody, Node
from parflex.bodies.rigid import RigidBody

__all__ = ["Body", "ElasticBody", "Node", "RigidBody", "sections"]
