# frozen_string_literal: true

module Rperf
  module Autostart
    # Hands a finished profile over where no rperf command does: to stderr, and to
    # its file.
    class Delivery
      # @param session [SharedSession, nil] what children take part in
      def initialize(settings, session)
        @settings = settings
        @session = session
        @messages = []
      end

      attr_reader :settings

      # Called again with the same profile, it does what an interruption has left to do.
      # @param tables [Boolean] whether the page and the like are printed
      def deliver(own, tables:)
        @merged = @text = @written = nil unless own.equal?(@own)
        @own = own
        @merged ||= @session ? @session.merge(own) : [own]
        profile, processes, children = *@merged
        # The tables' figures first, so that writing doesn't count; the file first, as it matters more.
        @text ||= tables ? tables_of(profile, { processes:, children: }.compact) : ""
        write(profile) unless @written
        say_messages
        print_tables
      end

      # A program after exec starts as this one did, and writes the same file.
      def hand_over
        @handed_over = @settings.variables
        @handed_over.each { |name, value| ENV[name] = value }
      end

      # The program has no use for them.
      def take_back
        @handed_over&.each_key { |name| ENV.delete(name) }
        @handed_over = nil
      end

      # Nobody waits for it.
      def report(_event) = nil

      private

      def write(profile)
        options = @settings.options
        return unless options.output

        Output.flush_before(options.output)
        # No interrupt can come between these two.
        @written = true
        Output.deliver(profile, options, @messages)
      end

      def say_messages
        Autostart.say(@messages.shift) until @messages.empty?
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
          **Counters.now,
          **children
        }
      end
    end
    private_constant :Delivery
  end
end
