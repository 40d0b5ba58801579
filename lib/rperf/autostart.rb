# frozen_string_literal: true

require_relative "api/account"
require_relative "hooks/ends"
require_relative "hooks/fork_guard"
require_relative "live/port"
require_relative "message"
require_relative "processes/shared_session"
require_relative "session/member"
require_relative "session/settings"
require_relative "session/standalone"

module Rperf
  # Begins to profile a whole program, as the environment asks for it, when rperf is loaded.
  module Autostart
    class << self
      # Starts, if the launch's settings allow it and, where only one Ruby is to be
      # profiled, no other one has been first.
      def begin(launch)
        return if launch.over?
        return launch.report_another unless launch.first?
        return begin_accounts(launch) if launch.variables["MODE"] == Accounts::MODE.name

        settings = Settings.new(launch)
        ForkGuard.install
        open_port(launch)
        launch.directory ? join(launch, settings) : Standalone.begin(settings)
        Ends.install
      rescue StandardError => e
        launch.refuse(Message.first_line(e))
      end

      private

      # What the environment may say beside it.
      BESIDE_ACCOUNTS = %w[ENABLED MODE LISTEN LISTEN_WAKE LISTEN_HELPER LISTEN_TOKEN LISTEN_TOKEN_FILE].freeze
      TOKENS = %w[LISTEN_TOKEN LISTEN_TOKEN_FILE].freeze
      private_constant :BESIDE_ACCOUNTS, :TOKENS

      # Native code reads the tokens in the environment, from which Launch has taken them: they are there only while
      # the port opens, so that neither the program nor its children see them.
      def open_port(launch)
        tokens = launch.variables.slice(*TOKENS).transform_keys { |key| "#{Launch::PREFIX}#{key}" }
        ENV.update(tokens)
        Port.begin_as_asked(launch.variables)
      ensure
        tokens.each_key { |name| ENV.delete(name) }
      end

      # They have no profile that anybody could merge: the program's children have accounts of their own.
      def begin_accounts(launch)
        return launch.refuse("accounts make no profile") if launch.directory

        further = launch.variables.keys - BESIDE_ACCOUNTS
        prefix = Launch::PREFIX
        return launch.refuse("#{prefix}MODE=account takes no #{prefix}#{further.first}") unless further.empty?

        launch.variables.each { |key, value| ENV["#{prefix}#{key}"] = value }
        Port.begin_as_asked(launch.variables)
        Accounts.begin
      end

      def join(launch, settings)
        shared = SharedSession.new(launch.directory, settings.options, settings.initiator)
        Member.begin(shared, inherited: launch.inherited?)
      end
    end
  end
  private_constant :Autostart
end
