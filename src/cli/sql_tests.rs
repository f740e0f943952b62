use super::*;

fn columns(forms: &[(&str, Form)]) -> Vec<TextColumn> {
    forms
        .iter()
        .map(|(name, form)| TextColumn {
            name: (*name).to_owned(),
            form: *form,
        })
        .collect()
}

fn printed(format: Format, columns: &[TextColumn], rows: &[&[Option<&str>]]) -> String {
    let mut printer = Printer::new(format, false);
    let mut parts = vec![Part::Columns(columns)];
    parts.extend(rows.iter().map(|row| Part::Row(row)));
    parts.push(Part::End(rows.len() as u64));
    parts
        .into_iter()
        .filter_map(|part| printer.take(part).unwrap())
        .collect()
}

#[test]
fn json_keeps_numbers_truth_and_json_and_makes_strings_of_the_rest() {
    let columns = columns(&[
        ("n", Form::Number),
        ("b", Form::Bool),
        ("j", Form::Json),
        ("t", Form::Text),
    ]);
    let rows: [&[Option<&str>]; 3] = [
        &[
            Some("9223372036854775807"),
            Some("t"),
            Some("{\n\"a\": [1]}"),
            Some("say \"hi\"\n"),
        ],
        &[Some("NaN"), Some("f"), None, Some("infinity")],
        &[Some("-Infinity"), None, Some("\"x\""), Some("{1,2}")],
    ];
    assert_eq!(
        printed(Format::Json, &columns, &rows),
        r#"{"n":9223372036854775807,"b":true,"j":{ "a": [1]},"t":"say \"hi\"\n"}
{"n":"NaN","b":false,"j":null,"t":"infinity"}
{"n":"-Infinity","b":null,"j":"x","t":"{1,2}"}
"#
    );
}

#[test]
fn csv_quotes_what_needs_it() {
    let columns = columns(&[("a", Form::Text), ("b", Form::Text)]);
    let rows: [&[Option<&str>]; 2] = [&[Some("x,y"), Some("say \"hi\"")], &[None, Some("")]];
    assert_eq!(
        printed(Format::Csv, &columns, &rows),
        "a,b\r\n\"x,y\",\"say \"\"hi\"\"\"\r\n,\r\n"
    );
}

#[test]
fn a_table_shows_its_columns_without_rows_and_tells_how_many_there_are() {
    let columns = columns(&[("status", Form::Text)]);
    let empty = printed(Format::Table, &columns, &[]);
    assert!(
        empty.contains("status") && empty.ends_with("(0 rows)\n"),
        "{empty}"
    );
    assert!(printed(Format::Table, &columns, &[&[Some("new")]]).ends_with("(1 row)\n"));
}

#[test]
fn a_page_cannot_send_control_characters_to_the_terminal() {
    let columns = columns(&[("title", Form::Text)]);
    let shown = printed(Format::Table, &columns, &[&[Some("\u{1b}[31mred\u{7}")]]);
    assert!(
        !shown.contains('\u{1b}') && !shown.contains('\u{7}'),
        "{shown:?}"
    );
    assert!(shown.contains("red"));
}

#[test]
fn a_long_answer_is_printed_in_several_tables_and_none_is_lost() {
    let columns = columns(&[("n", Form::Number)]);
    let numbers: Vec<String> = (0..2_500).map(|n| format!("<{n}>")).collect();
    let rows: Vec<Vec<Option<&str>>> = numbers.iter().map(|n| vec![Some(n.as_str())]).collect();
    let rows: Vec<&[Option<&str>]> = rows.iter().map(Vec::as_slice).collect();
    let shown = printed(Format::Table, &columns, &rows);
    assert_eq!(shown.matches('<').count(), 2_500);
    assert!(shown.ends_with("(2500 rows)\n"));
}
