"""formal: statements in the languages of proof assistants to operator trees."""
