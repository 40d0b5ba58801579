# frozen_string_literal: true

require_relative "../argument"
require_relative "../hooks/fork_guard"
require_relative "../live/port"
require_relative "../session/options"

# A port for those who want to know what the running program does.
module Rperf
  class << self
    # Opens a port: a socket that only this user, and root, can connect to. `rperf ps` lists the programs that have one,
    # and other commands ask them. Until then a program differs only by a native thread that sleeps. Forked children
    # have ports of their own. A second call changes nothing.
    #
    # @param directory [String, Pathname, nil] where the socket is to be; nil: in the user's private folder
    # @param wake [Boolean] whether the main thread may be woken for an answer where all threads wait
    # @param helper [Boolean] whether to keep a thread for answers: a program in which all threads wait answers at once,
    #   and isn't woken; but Ruby notices no deadlocks then
    # @return [String] the socket's path
    # @raise [ArgumentError] for a path that is none
    # @raise [Rperf::Error] if there can't be a port
    def listen(directory: nil, wake: true, helper: false)
      directory = Options.path(:directory, directory) unless directory.nil?
      { wake:, helper: }.each { |name, value| Argument.one_of(name, value, [true, false]) }
      ForkGuard.install
      Port.begin(directory, wake:, helper:)
    end

    private

    # @param variables [#[]] RPERF_LISTEN and the like, without RPERF_
    def listen_as_asked(variables)
      ForkGuard.install
      Port.begin_as_asked(variables)
    end
  end
end
