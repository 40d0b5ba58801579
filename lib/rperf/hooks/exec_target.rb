# frozen_string_literal: true

module Rperf
  # The program that a call of exec is to start.
  module ExecTarget
    # Ruby runs command lines with other characters, or with these words, by a shell.
    PLAIN = %r{\A[\w./+ -]+\z}
    SHELL_WORDS = %w[. : break case continue do done elif else esac eval exec exit export fi for if in readonly return
                     set shift then times trap unset until while].freeze
    private_constant :PLAIN, :SHELL_WORDS

    # Whether the program certainly doesn't exist.
    # @param arguments [Array] those of exec
    def self.missing?(arguments)
      return false if arguments.any?(Hash) # It may get another PATH, or another directory.

      command, *rest = arguments
      name = command.is_a?(Array) ? command.first : command
      return false unless name.is_a?(String)

      name = from_line(name) if rest.empty? && name.equal?(command)
      name ? !found?(name) : false
    rescue StandardError
      false # exec has its own words for such a name.
    end

    def self.from_line(line)
      word = line.split.first if line.b.match?(PLAIN)
      word unless SHELL_WORDS.include?(word)
    end
    private_class_method :from_line

    def self.found?(name)
      return File.exist?(name) if name.include?("/")

      directories = ENV["PATH"]
      directories.nil? || directories.split(":").any? { |directory| File.executable?(File.join(directory, name)) }
    end
    private_class_method :found?
  end
  private_constant :ExecTarget
end
