//! Gets one resource.
