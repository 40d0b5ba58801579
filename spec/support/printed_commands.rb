# frozen_string_literal: true

# The fenced blocks of the README and the guide, which readers copy.
module PrintedCommands
  # A block's language, why it isn't run (nil if it is), text, and place in its file.
  Block = Struct.new(:language, :reason, :text, :place) do
    # The command lines; those of a console stand behind a $.
    def commands
      lines = text.gsub("\\\n", "").lines(chomp: true).reject { |line| line.strip.empty? || line.start_with?("#") }
      language == "console" ? lines.grep(/\A\$ /).map { |line| line.delete_prefix("$ ") } : lines
    end
  end

  ROOT = File.expand_path("../..", __dir__)
  # Languages that a reader runs, and those that are only read.
  RUN = %w[console sh ruby].freeze
  READ = %w[text].freeze
  # Reasons not to run a block: a spec can't have these things, or mustn't do them.
  REASONS = ["in a Rails app", "in a config.ru", "in a Gemfile", "in an app that runs on and on", "in a checkout",
             "needs Sidekiq", "needs a Gemfile", "needs RSpec", "needs Minitest", "needs the profile of",
             "needs Docker", "needs Go", "needs jq", "needs a Rakefile", "runs for ever", "a server runs until",
             "may end with status 3", "needs Graphviz", "needs valgrind", "needs a program with Ractors",
             "an app with these methods", "needs a terminal", "writes to /usr/local"].freeze
  PAGES = ["README.md", *Dir["docs/guide/*.md", base: ROOT]].freeze

  def self.to_run(page)
    blocks(page).reject { |block| block.reason || READ.include?(block.language) }
  end

  def self.blocks(page)
    text = File.read(File.join(ROOT, page))
    text.to_enum(:scan, /^```(.*)\n((?m:.*?))^```$/).map do
      match = Regexp.last_match
      language, reason = match[1].split(/ norun: /, 2)
      Block.new(language, reason, match[2], "#{page}:#{match.pre_match.count("\n") + 1}")
    end
  end
end
