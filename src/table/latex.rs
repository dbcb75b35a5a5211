//! Tables as LaTeX, for papers that load `booktabs`.

use std::fmt::Write as _;

use crate::system::printable;
use crate::table::{Align, Table};

impl Table {
    /// Formats the table as a LaTeX `tabular` with rules of `booktabs`; title and notes become comments.
    pub fn to_latex(&self) -> String {
        let mut text = format!("% {}\n% Needs \\usepackage{{booktabs}}.\n", one_line(&self.title));
        for note in &self.notes {
            let _ = writeln!(text, "% {}", one_line(note));
        }
        let align = |align| match align {
            Align::Left => 'l',
            Align::Right => 'r',
        };
        let columns: String = self.columns.iter().map(|column| align(column.align)).collect();
        let _ = writeln!(text, "\\begin{{tabular}}{{{columns}}}\n\\toprule");
        let headings = self.columns.iter().map(|column| escape(&column.heading));
        text.push_str(&line(headings));
        text.push_str("\\midrule\n");
        for row in self.rows() {
            text.push_str(&line(row.iter().map(|cell| escape(&cell.shown()))));
        }
        text.push_str("\\bottomrule\n\\end{tabular}\n");
        text
    }
}

/// Makes text safe for a LaTeX comment: one line, without control characters.
fn one_line(text: &str) -> String {
    printable(&text.replace('\n', " ")).into_owned()
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    // After `\\` or a rule, LaTeX would read `[` or `*` as an argument.
    let guard = if cells[0].starts_with(['[', '*']) { "{}" } else { "" };
    format!("{guard}{} \\\\\n", cells.join(" & "))
}

/// Escapes LaTeX's special characters, and writes symbols in maths mode and `1.2e-7` as a power of ten.
fn escape(text: &str) -> String {
    let text = &printable(text);
    let mut written = String::new();
    for word in text.split_inclusive([' ', '–']) {
        let (word, after) = word.split_at(word.trim_end_matches([' ', '–']).len());
        match power_of_ten(word) {
            Some(power) => written.push_str(&power),
            None => word.chars().for_each(|c| push(&mut written, c)),
        }
        after.chars().for_each(|c| push(&mut written, c));
    }
    written
}

/// Formats `1.2e-7`, possibly in brackets or parentheses or before a comma, as a power of ten.
fn power_of_ten(word: &str) -> Option<String> {
    let bare = word.trim_start_matches(['[', '(']).trim_end_matches([',', ']', ')']);
    let (mantissa, exponent) = bare.split_once('e')?;
    let (_, power) = (mantissa.parse::<f64>().ok()?, exponent.parse::<i32>().ok()?);
    let (before, after) = word.split_once(bare)?;
    Some(format!("{before}${mantissa}\\times10^{{{power}}}${after}"))
}

fn push(text: &mut String, c: char) {
    let symbol = match c {
        '\\' => "\\textbackslash{}",
        '^' => "\\textasciicircum{}",
        '~' => "\\textasciitilde{}",
        'ε' => "$\\varepsilon$",
        'α' => "$\\alpha$",
        'γ' => "$\\gamma$",
        'δ' => "$\\delta$",
        'λ' => "$\\lambda$",
        'σ' => "$\\sigma$",
        'τ' => "$\\tau$",
        '⁰' => "$^0$",
        '₁' => "$_1$",
        '≫' => "$\\gg$",
        '≥' => "$\\ge$",
        '≤' => "$\\le$",
        '≈' => "$\\approx$",
        '·' => "$\\cdot$",
        '×' => "$\\times$",
        '−' => "$-$",
        '|' => "$|$",
        '<' => "$<$",
        '>' => "$>$",
        '‖' => "$\\|$",
        '–' => "--",
        '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
            text.push('\\');
            text.push(c);
            return;
        }
        plain => {
            text.push(plain);
            return;
        }
    };
    text.push_str(symbol);
}

#[cfg(test)]
mod tests {
    use super::super::summary::Spread;
    use super::*;

    #[test]
    fn a_paper_can_take_it_and_no_name_is_a_command() {
        let rows = [
            ("50% & a_b", Spread::of([1.0, 2.0, 3.0])),
            ("τ", Spread::of([1.0e-7, 2.0e-7, 3.0e-7])),
            ("\\input{/etc/passwd}", None),
            ("[2cm]", None),
            ("*", None),
            ("a\n\nb", None),
            ("$x$ ^~ <b> #1 {", None),
            ("\u{1b}[2J", None),
            ("=1+1", None),
        ];
        let table = Table::from_items("example", "A title\n\\input{x}", &rows)
            .words("family", "family", |row| row.0)
            .numbers("needed", "L*(ε) (nats)", |row| row.1)
            .note("One.\n\\input{y}")
            .build();
        insta::assert_snapshot!(table.to_latex(), @r"
        % A title \input{x}
        % Needs \usepackage{booktabs}.
        % One. \input{y}
        \begin{tabular}{lr}
        \toprule
        family & L*($\varepsilon$) (nats) \\
        \midrule
        50\% \& a\_b & 2.00 (1.00--3.00) \\
        $\tau$ & $2.00\times10^{-7}$ ($1.00\times10^{-7}$--$3.00\times10^{-7}$) \\
        \textbackslash{}input\{/etc/passwd\} & -- \\
        {}[2cm] & -- \\
        {}* & -- \\
        a\textbackslash{}u000a\textbackslash{}u000ab & -- \\
        \$x\$ \textasciicircum{}\textasciitilde{} $<$b$>$ \#1 \{ & -- \\
        \textbackslash{}u001b[2J & -- \\
        =1+1 & -- \\
        \bottomrule
        \end{tabular}
        ");
    }
}
