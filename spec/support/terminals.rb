# frozen_string_literal: true

require "io/console"
require "pty"

# Runs the command on a terminal.
module Terminals
  PLAIN = { "TERM" => "xterm", "NO_COLOR" => "1", "PAGER" => "", "LESS" => nil, "COLUMNS" => nil }.freeze

  # What `rperf` with these arguments prints on a terminal of so many columns.
  def on_terminal(width, *arguments, rows: 40, env: {})
    PTY.open do |screen, terminal|
      terminal.winsize = [rows, width]
      pid = Process.spawn(clean_environment.merge(PLAIN, env), *rperf_command(*arguments),
                          chdir: directory, in: terminal, out: terminal, err: terminal)
      terminal.close
      text = all_of(screen)
      Process.wait(pid)
      text.delete("\r").force_encoding("UTF-8")
    end
  end

  private

  def all_of(screen)
    text = +""
    loop { text << screen.readpartial(4096) }
  rescue EOFError, Errno::EIO
    text
  end
end
