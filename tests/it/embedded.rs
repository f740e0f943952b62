//! The embedded server, in every state that one may find it in.

use crate::support::db::TestDb;

#[tokio::test]
async fn each_test_has_a_migrated_database_of_its_own() {
    let (one, other) = tokio::join!(TestDb::new(), TestDb::new());
    sqlx::raw_sql("create table t (x int)")
        .execute(&one.pool)
        .await
        .unwrap();
    let exists = "select to_regclass('t') is not null";
    assert!(
        sqlx::query_scalar::<_, bool>(exists)
            .fetch_one(&one.pool)
            .await
            .unwrap()
    );
    assert!(
        !sqlx::query_scalar::<_, bool>(exists)
            .fetch_one(&other.pool)
            .await
            .unwrap()
    );
    let migrated: i64 = sqlx::query_scalar("select count(*) from _sqlx_migrations")
        .fetch_one(&one.pool)
        .await
        .unwrap();
    assert!(migrated > 0);
}
