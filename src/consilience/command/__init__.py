"""The command `consilience`: thin verbs over the library."""
