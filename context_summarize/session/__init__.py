"""The stateful shell: the manager, and what runs behind its methods."""
