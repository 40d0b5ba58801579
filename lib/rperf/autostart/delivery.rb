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
      end

      def deliver(profile)
        profile, processes, children = *(@session&.merge(profile) || profile)
        print_tables(profile, { processes:, children: }.compact)
        Output.write(profile, @settings.options) if @settings.options.output
      rescue Error => e
        Autostart.say(e.message)
      ensure
        Children.close
      end

      # Nobody waits for it.
      def report(_word) = nil

      private

      def print_tables(profile, children)
        tables = +""
        tables << profile.verbose_lines if @settings.options.verbose
        tables << profile.stat(stat_figures(children)) if @settings.stat?
        STDERR.write(tables)
      rescue IOError, SystemCallError
        nil # The program has closed its stderr; the file still matters.
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
