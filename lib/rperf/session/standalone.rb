# frozen_string_literal: true

require_relative "../message"
require_relative "../processes/shared_session"
require_relative "output"
require_relative "process_stats"
require_relative "session"

module Rperf
  # The destination of a program that is profiled as a whole without an rperf command: the profile goes to a file, and
  # the page and the tables to stderr.
  class Standalone
    # @param settings [Settings]
    # @raise [Rperf::Error] if profiling can't start
    def self.begin(settings)
      options = settings.options
      shared = SharedSession.create(options, settings.initiator) if options.inherit
      Session.new(options, new(settings, shared), initiator: settings.initiator, shared:).begin
    rescue StandardError
      shared&.close
      raise
    end

    # @return [Settings] with which a daemon of the program begins anew
    attr_reader :settings

    def initialize(settings, shared)
      @settings = settings
      @shared = shared
      @messages = []
    end

    # Called again with the same profile, it does the steps that an interruption has left.
    # @param tables [Boolean] whether the page and the tables are printed
    def deliver(own, tables:)
      @merged = @text = @written = nil unless own.equal?(@own)
      @own = own
      @merged ||= @shared ? @shared.merge(own) : [own]
      profile, processes, children = *@merged
      # The figures are taken before the writing, so that they don't include it; the file is written before the tables
      # are printed, as it matters more.
      @text ||= tables ? tables_of(profile, { processes:, children: }.compact) : ""
      write(profile) unless @written
      say_messages
      print_tables
    end

    # A program started by exec begins as this one did, and writes the same file.
    def hand_over
      @handed_over = @settings.variables
      @handed_over.each { |name, value| ENV[name] = value }
    end

    # The exec has failed: the program runs on without the variables.
    def take_back
      @handed_over&.each_key { |name| ENV.delete(name) }
      @handed_over = nil
    end

    # Nobody waits for reports.
    def report(_event) = nil

    private

    def write(profile)
      options = @settings.options
      @messages.replace(profile.not_counted)
      path = options.output or return
      format = options.format
      lines = options.show_lines?
      Output.flush_before(path)
      # A handler can raise wherever a method of Ruby returns. Between these two none does, and the second one is a
      # call of C, in which nothing can interrupt it.
      @written = true
      profile.deliver(path, format, @messages, lines:)
    end

    # A line that is said twice is better than one that is lost.
    def say_messages
      until @messages.empty?
        Message.say(@messages.first)
        @messages.shift
      end
    end

    def tables_of(profile, children)
      text = +""
      text << profile.verbose_lines if @settings.options.verbose
      text << profile.stat(stat_figures(children)) if @settings.stat?
      text
    end

    def print_tables
      text = @text
      @text = ""
      STDERR.write(text)
    rescue IOError, SystemCallError
      nil # The program has closed its stderr.
    end

    def stat_figures(children)
      {
        command: @settings.stat_command,
        report: @settings.stat_report?,
        lines: @settings.options.show_lines?,
        **ProcessStats.now,
        **children
      }
    end
  end
  private_constant :Standalone
end
