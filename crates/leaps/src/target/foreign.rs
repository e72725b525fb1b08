//! Other formats of graphs, which are recognised when they are given as files of edges: read as such, they would be refused
//! for a detail, or mean something else.

/// What to say of an edge from a site to itself, which is how COO files write fields.
pub(super) const COO: &str = "this looks like a COO file (dimod), where 'i i h' is a field and E = sum h s + sum J s s'; \
     for spins write 'field i h' for it, and change the signs of the couplings";

/// The line, from 1, by which a text shows that it is in another format, and how to turn it into a file of edges.
pub(super) fn recognised(text: &str) -> Option<(usize, String)> {
    // Whatever tells formats apart stands in the first lines.
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut first = None;
    for (number, line) in lines.by_ref() {
        let number = number + 1;
        if line.trim_start().starts_with("%%MatrixMarket") {
            let reason = "this looks like a Matrix Market file: remove its head, subtract 1 from every index, and keep one of \
                          'i j J' and 'j i J'";
            return Some((number, reason.to_owned()));
        }
        let Some(comment) = line.trim_start().strip_prefix('#') else {
            first = Some((number, words(line)));
            break;
        };
        let vartype = comment.trim_start().strip_prefix("vartype");
        if vartype.is_some_and(|rest| rest.starts_with(['=', ':'])) {
            return Some((number, format!("{COO}, and remove this line")));
        }
    }
    let (number, head) = first?;
    let mut lines = lines.map(|(_, line)| words(line)).filter(|words| !words.is_empty()).peekable();
    let next = lines.peek()?;
    let counts = head.iter().all(|word| word.parse::<u64>().is_ok());
    if head.len() != 2 || !counts || next.len() != 3 {
        return None;
    }
    let sites = head[0];
    let from_0 = lines.any(|words| words.iter().take(2).any(|word| *word == "0"));
    let shift = if from_0 { "" } else { " subtract 1 from every vertex," };
    Some((
        number,
        format!(
            "this looks like a rudy (G-set) file, which the targets maxcut and independent-set read; else write 'sites {sites}' for its first line, which counts vertices and edges,{shift} and make couplings of the weights (for a maximum cut J = -w)"
        ),
    ))
}

/// The words of a line before any comment.
fn words(line: &str) -> Vec<&str> {
    line.split('#').next().unwrap_or("").split_whitespace().collect()
}
