"""What people declare: frozen dataclasses that are checked when they are made."""
