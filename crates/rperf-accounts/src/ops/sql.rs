pub fn normalise(statement: &[u8], out: &mut String) {
    out.push_str(&String::from_utf8_lossy(statement));
}
