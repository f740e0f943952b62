//! A report of the laboratory for people: as text, and as Markdown for docs/BENCHMARKS.md.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, ContentArrangement, presets};

use crate::lab::{Finding, Kind, Machine, Report, Table};

/// As text, tables drawn with lines.
pub(super) fn text(report: &Report) -> String {
    let mut text = format!("{}\n", machine(&report.machine));
    for section in &report.sections {
        let title = format!("{}. {}", section.section, section.title);
        let rule = "━".repeat(title.chars().count());
        let _ = write!(text, "\n{title}\n{rule}\n");
        for table in &section.tables {
            let _ = write!(text, "\n{}\n{}\n", table.title, drawn(table));
            for note in &table.notes {
                let _ = writeln!(text, "  {note}");
            }
        }
        let _ = writeln!(text);
        for finding in &section.findings {
            let _ = writeln!(text, "- {}", said(finding));
        }
        let _ = writeln!(text, "\n({}; {:.0} s)", section.tables_used, section.took_s);
    }
    if !report.rules.is_empty() {
        let _ = writeln!(text, "\nRules of thumb\n━━━━━━━━━━━━━━\n");
        for rule in &report.rules {
            let _ = writeln!(text, "- \"{}\": {}", rule.rule, rule.measured);
        }
    }
    text
}

/// As Markdown.
pub(super) fn markdown(report: &Report) -> String {
    let mut text = format!("{}\n", machine(&report.machine));
    for section in &report.sections {
        let _ = write!(text, "\n### {}. {}\n", section.section, section.title);
        for table in &section.tables {
            let _ = write!(text, "\n**{}**\n\n{}\n", table.title, piped(table));
            for note in &table.notes {
                let _ = write!(text, "\n*{}*\n", escaped(note));
            }
        }
        let _ = writeln!(text);
        for finding in &section.findings {
            let _ = writeln!(text, "- {}", escaped(&said(finding)));
        }
        let _ = write!(
            text,
            "\nMeasured on {}, in {:.0} s.\n",
            section.tables_used, section.took_s
        );
    }
    if !report.rules.is_empty() {
        let _ = write!(
            text,
            "\n### Rules of thumb\n\n| said | measured here |\n|---|---|\n"
        );
        for rule in &report.rules {
            let _ = writeln!(
                text,
                "| {} | {} |",
                escaped(rule.rule),
                escaped(&rule.measured)
            );
        }
    }
    text
}

fn machine(machine: &Machine) -> String {
    let settings: Vec<String> = machine
        .settings
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    format!(
        "pgcrawl {} ({} build), {} run of {}; PostgreSQL {} by {}; {} cores, load {} before the run; {}; a commit of one row takes {:.2} ms.",
        machine.pgcrawl,
        machine.build,
        machine.size,
        machine.measured_at,
        machine.server,
        machine.reached_by,
        machine.cores,
        machine
            .load
            .map_or_else(|| "unknown".to_owned(), |load| format!("{load:.1}")),
        settings.join(", "),
        machine.commit_ms
    )
}

fn said(finding: &Finding) -> String {
    match finding.kind {
        Kind::Observed => finding.text.clone(),
        Kind::Met => format!("goal met: {}", finding.text),
        Kind::Missed => format!("goal MISSED: {}", finding.text),
    }
}

fn drawn(table: &Table) -> comfy_table::Table {
    let mut drawn = comfy_table::Table::new();
    drawn
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(table.headings());
    for row in table.rows() {
        drawn.add_row(row.iter().map(|cell| {
            comfy_table::Cell::new(cell).set_alignment(if cell.is_figure() {
                CellAlignment::Right
            } else {
                CellAlignment::Left
            })
        }));
    }
    drawn
}

/// Figures stand to the right where the whole column is of them.
fn piped(table: &Table) -> String {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let headings: Vec<String> = table.headings().map(escaped).collect();
    let rules = (0..headings.len())
        .map(|column| {
            let figures = table.rows().iter().all(|row| row[column].is_figure());
            if figures { "--:" } else { "---" }.to_owned()
        })
        .collect();
    let rows = table
        .rows()
        .iter()
        .map(|row| line(row.iter().map(|cell| escaped(&cell.to_string())).collect()));
    [line(headings), line(rules)]
        .into_iter()
        .chain(rows)
        .collect::<Vec<_>>()
        .join("\n")
}

/// What Markdown would take for markup.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('*', "\\*")
        .replace('_', "\\_")
}
