-- A page that redirects to itself without end is an error, and its last answer has a status all the same.

comment on column pages.http_status is 'Of the stored answer; null = no answer, see error. Beside an error: of the last answer, as in a redirect_loop. A 304 leaves it as it was, see body_at; it is 304 only where the row was deleted meanwhile.';
