"""Ways in: moves an operator of another framework, its code and the objects in its cluster, to this one.

`kopf_code` reads handlers of kopf, `skeleton` writes controllers for them, and `take_over` changes the objects.
"""
