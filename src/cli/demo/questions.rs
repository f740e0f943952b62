//! Three questions to the database of a crawl, as an operator would type them.

/// A question in words and in SQL.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    pub(super) words: &'static str,
    pub(super) sql: &'static str,
}

/// What the demo asks.
pub(super) const QUESTIONS: [Question; 3] = [
    Question {
        words: "How were the requests answered?",
        sql: "select http_status, count(*) as pages, round(avg(fetch_ms), 1) as avg_ms, pg_size_pretty(sum(wire_bytes)) as received
from pages
group by http_status
order by http_status",
    },
    Question {
        words: "Which links are broken, and where do they stand?",
        sql: "select t.url as broken, v.url as linked_from
from pages p
join tasks t on t.id = p.task_id
join tasks v on v.id = t.via
where p.http_status = 404
order by t.id
limit 5",
    },
    Question {
        words: "Which pages were slow, and what are they called?",
        sql: "select t.url, p.fetch_ms, p.lang, p.title
from pages p
join tasks t on t.id = p.task_id
order by p.fetch_ms desc
limit 5",
    },
];
