//! The program `leaps`.

fn main() -> std::process::ExitCode {
    leaps_cli::main()
}
