-- Ends the hold of an address. $1 address, $2 worker, $3 version of the hold, $4 ms from now until it may be asked again
update addresses
set polite_at = now() + make_interval(secs => $4::int / 1000.0),
    held_by   = null
where ip = $1::text::inet
  and held_by = $2
  and hold_version = $3
