//! Conditions: what is taken for one, and what is said of the rest.

use pgcrawl::frontier::operate::{Change, OperateError};

use super::{Ground, done, on};

/// The words and the place of a refusal.
async fn refusal(ground: &Ground, text: &str) -> (String, Option<usize>) {
    match ground.operator.condition(text).await {
        Err(error @ OperateError::Condition { .. }) => {
            let words = error.to_string();
            assert!(words.contains(text), "{words} does not name {text}");
            let OperateError::Condition { said, position, .. } = error else {
                unreachable!("just matched");
            };
            (said, position)
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[tokio::test]
async fn a_second_statement_in_a_condition_is_refused_and_not_run() {
    let ground = Ground::new().await;
    ground.seed(&["http://a.example/1"]).await;
    for text in [
        "true); drop table pages; --",
        "true; drop table pages",
        "true then 1 end from visits; drop table pages; --",
        "true)\n; drop table pages; --",
    ] {
        refusal(&ground, text).await;
    }
    assert_eq!(ground.number("select count(*) from pages").await, 0);
}

#[tokio::test]
async fn a_condition_cannot_break_out_of_its_brackets() {
    let ground = Ground::new().await;
    for text in [
        "false) or (true",
        "false) union select 1 from (select 1",
        "true then 1 end, case when true",
        "false or (true",
        "'",
        "/*",
        "$$",
        "",
        "  ",
    ] {
        refusal(&ground, text).await;
    }
}

#[tokio::test]
async fn a_refusal_says_where_in_the_condition_it_is() {
    let ground = Ground::new().await;
    let (said, position) = refusal(&ground, "url like 'x' and stauts = 'new'").await;
    assert!(said.contains("stauts"), "{said}");
    assert_eq!(position, Some("url like 'x' and ".len() + 1));
    let (_, position) = refusal(&ground, "url = 'ü' and ä").await;
    assert_eq!(position, Some(15));
    for text in ["url = 'ü' and", "false or (true"] {
        let (said, position) = refusal(&ground, text).await;
        assert_eq!((said.as_str(), position), ("it is not complete", None));
    }
    let (said, _) = refusal(&ground, "depth").await;
    assert!(said.contains("boolean"), "{said}");
    let (said, _) = refusal(&ground, "depth = $1").await;
    assert!(said.contains("parameter"), "{said}");
    refusal(&ground, "count(*) > 1").await;
    refusal(&ground, "claimed_by is null").await;
}

#[tokio::test]
async fn a_comment_a_subquery_and_every_column_of_the_view_make_a_condition() {
    let ground = Ground::new().await;
    ground
        .seed(&["http://a.example/1", "http://b.example/1"])
        .await;
    let columns = ground
        .column("select column_name from information_schema.columns where table_name = 'visits' and table_schema = current_schema()")
        .await;
    assert!(columns.len() > 25, "{columns:?}");
    let all: Vec<String> = columns
        .iter()
        .map(|column| format!("{column} is null"))
        .collect();
    ground.condition(&all.join(" or ")).await;
    let tally = ground
        .change(
            Change::Exclude,
            "authority in (select authority from hosts where id = 1) -- one of them",
        )
        .await;
    assert_eq!((tally.tasks, tally.hosts), (1, 1));
}

#[tokio::test]
async fn a_condition_that_fails_on_a_value_is_named_and_changes_nothing() {
    let ground = Ground::new().await;
    ground.seed(&["http://a.example/1"]).await;
    ground.end_all(|_| done()).await;
    let which = ground.condition("1 / depth > 0").await;
    let error = ground
        .operator
        .change(Change::Requeue, &which, &mut on)
        .await
        .unwrap_err();
    let words = error.to_string();
    assert!(
        matches!(error, OperateError::Condition { .. }) && words.contains("division by zero"),
        "{words}"
    );
    assert_eq!(ground.column("select status from tasks").await, ["done"]);
}

#[tokio::test]
async fn a_condition_that_is_too_slow_is_asked_of_fewer_tasks_and_then_given_up() {
    let ground = Ground::new().await;
    let many: Vec<String> = (0..60).map(|n| format!("http://a.example/{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    ground.seed(&many).await;
    let pool = ground
        .db
        .another_pool(&pgcrawl::db::DbSettings {
            statement_timeout: std::time::Duration::from_millis(200),
            ..Default::default()
        })
        .await;
    let frontier = pgcrawl::frontier::Frontier::new(pool, Default::default());
    let operator = pgcrawl::frontier::operate::Operator::new(frontier);
    let which = ground
        .condition("pg_sleep(0.02) is not null and url is not null")
        .await;
    let error = operator
        .count(Change::Exclude, &which, &mut on)
        .await
        .unwrap_err();
    assert!(matches!(error, OperateError::Slow { .. }), "{error}");
}
