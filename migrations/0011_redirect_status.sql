-- A page that redirects to itself without end is an error, and its last answer has a status all the same.

comment on column pages.http_status is 'Null = no answer, see error. Beside an error: of the last answer, as in a redirect_loop.';
