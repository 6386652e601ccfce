"""The battery: random questions in small worlds, each judged by enumeration that shares no code with the library."""
