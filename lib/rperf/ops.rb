# frozen_string_literal: true

require_relative "deferred"
require_relative "ops/guard"
require_relative "ops/loaded"
require_relative "wrapped"

module Rperf
  # What libraries wait for, and what they render, enqueue and perform, gets names by itself, while a session measures
  # ops (`measure: :ops`). Each source is for one library: `find` returns what there is of it to hook into, if it is
  # loaded, and `install` does that. It is done when such a session begins, and for libraries that come later as files
  # are compiled. What is installed stays, and is silent without such a session.
  module Ops
    CODE = Deferred.new("#{__dir__}/ops", "named", "job_class", "notifications", "net_http", "active_record", "caches",
                        "action_mailer", "action_view", "tilt", "active_job", "sidekiq", "redis_client", "sequel",
                        "pools")
    private_constant :CODE

    class << self
      # A session is about to begin that measures ops.
      def prepare = look

      # It has begun.
      def begin
        look
        watch if missing? && !@watch
      end

      # It is over. A forked child has inherited what its parent had.
      def release
        watch = @watch or return
        @watch = nil
        watch.disable
      end

      private

      # Those that are to be looked for. Each is taken out by the thread that installs it.
      def missing
        CODE.load
        @missing ||= [NetHTTP, ActiveRecord, Caches, ActionMailer, ActionView, Tilt, ActiveJob, Sidekiq, RedisClient,
                      Sequel, Pools::ActiveRecord, Pools::ConnectionPool]
      end

      def missing? = @missing&.any?

      # For each file that is compiled, and each text that is evaluated. The event is none of compiled code's, so no
      # code has to be changed, or compiled again, for it.
      def watch
        Guard.attempt("libraries that are loaded later get no ops", Guard::LAST) do
          @watch = TracePoint.new(:script_compiled) { look_again }
          @watch.enable
        end
      end

      # Before a file runs; what has been loaded before is there. A session that has ended at the program's end, where
      # none of its methods may be called, hasn't released it.
      def look_again
        return unless Native.main_ractor?
        return stop_looking unless Native.ops?

        look
        stop_looking unless missing?
      end

      # Clients of the port may have begun another session meanwhile, which has taken the watch for its own.
      def stop_looking
        Guard.attempt("go on being looked for", Guard::LAST) { release }
        watch if Native.ops? && missing? && !@watch
      end

      # A source that fails isn't tried again.
      def look
        Guard.attempt("of libraries are missing", Guard::LAST) do
          # Another thread may look meanwhile.
          found = missing.dup.to_h { |source| [source, source.find] }.compact
          found.each do |source, library|
            next unless missing.delete(source)

            Guard.attempt("of a library are missing", Guard::LAST) { source.install(library) }
          end
        end
      end
    end
  end
  private_constant :Ops
end
