//! The condition that chooses tasks: an operator's SQL, proven to be one expression.

use sqlx::{AssertSqlSafe, Either, Executor as _, SqlSafeStr as _, Statement as _};

use super::{OperateError, Operator, Result};
use crate::frontier::tries::{once, run};

/// An SQL condition over the columns of the view `visits`, which Postgres has read and found to be one. [`Operator::condition`] makes it.
///
/// An operator may do anything to this database; what a condition must not do is to mean something else than it seems to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition(Option<String>);

/// Two frames that cannot both be broken out of: a bracket too many has no partner in the first, and what ends a `when` has no place in the
/// second. The line break ends a comment.
const FRAMES: [(&str, &str); 2] = [
    ("select case when ", "\n then 1 end from visits"),
    ("select from visits where (", "\n)"),
];

impl Condition {
    /// All tasks.
    pub fn every() -> Condition {
        Condition(None)
    }

    /// Whether no condition is made.
    pub fn is_every(&self) -> bool {
        self.0.is_none()
    }

    /// As it was typed.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or("true")
    }
}

impl Operator {
    /// Has a condition read by Postgres, without running it.
    ///
    /// # Errors
    /// [`OperateError::Condition`] with what Postgres says, and where, if it is no condition over the columns of `visits`.
    pub async fn condition(&self, text: &str) -> Result<Condition> {
        let refuse = |said: &str, hint: &str| OperateError::Condition {
            condition: text.to_owned(),
            said: said.to_owned(),
            position: None,
            hint: Some(hint.to_owned()),
        };
        if text.trim().is_empty() {
            return Err(refuse("it is empty", "`true` is true of all tasks"));
        }
        if text.contains('\0') {
            return Err(refuse("it has a NUL character", "leave that out"));
        }
        for (before, after) in FRAMES {
            let sql = format!("{before}{text}{after}");
            let parameters = run!(&self.frontier, "the condition", async |db| {
                let sql = AssertSqlSafe(sql.clone()).into_sql_str();
                db.prepare(sql)
                    .await
                    .map(|prepared| match prepared.parameters() {
                        Some(Either::Left(types)) => types.len(),
                        Some(Either::Right(count)) => count,
                        None => 0,
                    })
            })
            .map_err(|error| OperateError::of_condition(text, before.chars().count(), error))?;
            if parameters > 0 {
                return Err(refuse("it has a parameter", "write the value in its place"));
            }
        }
        Ok(Condition(Some(text.to_owned())))
    }
}
