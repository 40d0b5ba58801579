# frozen_string_literal: true

module Rperf
  class Viewer
    # The routes below the viewer's path: docs/internals/viewer-format.md has the requests and the answers.
    class Routes
      NOTHING = "There is nothing here."
      ID = /[\w-]+/

      # Path and method of each request, and the method that answers it.
      TABLE = {
        %r{\A/?\z} => ["GET", :page],
        %r{\A/snapshots\.json\z} => ["GET", :list],
        %r{\A/snapshots\z} => ["POST", :take],
        %r{\A/snapshots/(#{ID})\z} => ["DELETE", :delete],
        %r{\A/snapshots/(#{ID})\.rpv\z} => ["GET", :data],
        %r{\A/snapshots/(#{ID})\.pb\.gz\z} => ["GET", :file],
        %r{\A/diff/(#{ID})/(#{ID})\.rpv\z} => ["GET", :difference]
      }.freeze
      private_constant :ID, :TABLE

      def initialize(viewer, snapshots)
        @viewer = viewer
        @snapshots = snapshots
        @page = Page.new
      end

      # @param place [String] the path below the viewer's
      # @param path [String] the viewer's
      # @return [Array] the Rack response
      def answer(env, place, path)
        TABLE.each do |pattern, (method, action)|
          match = pattern.match(place) or next
          return wrong_method(method) unless allowed(method).include?(env["REQUEST_METHOD"])
          return @page.answer(env, path) if action == :page

          refusal = method == "GET" ? Web::Access.foreign(env) : Web::Access.forged(env)
          return refusal || send(action, *match.captures)
        end
        Web::Answer.text(404, NOTHING)
      end

      private

      def allowed(method) = method == "GET" ? %w[GET HEAD] : [method]

      def wrong_method(method)
        methods = allowed(method).join(", ")
        Web::Answer.text(405, "This takes #{methods} only.", { "allow" => methods })
      end

      def list
        Web::Answer.json(200, { snapshots: @snapshots.list.map(&:facts), can_take: obstacle.nil?, can_delete: true,
                                can_save: true, process: Process.pid, notes: })
      end

      # Whoever looks at the page may not know how the app was started.
      def notes = [obstacle, whole_program, dropped].compact

      # Why no snapshot can be taken.
      def obstacle
        session = RunningSession.get
        return "Profiling is off in this process: Rperf.start turns it on." unless session

        reason = session.snapshot_obstacle(clear: false)
        "No snapshot can be taken: #{reason}." if reason
      end

      def whole_program
        initiator = RunningSession.get&.initiator
        return unless initiator

        "#{initiator} profiles this program as a whole: each snapshot is of all the time since its start. " \
          "Comparing two shows the time between them."
      end

      def dropped
        count = @snapshots.dropped
        return if count.zero?

        "#{count} older #{count == 1 ? "snapshot was" : "snapshots were"} dropped: no more than " \
          "#{@snapshots.max_count} are kept, and no more than #{format("%g", @snapshots.max_bytes / 1e6)} MB."
      end

      def take
        id = @viewer.take_snapshot!
        id ? Web::Answer.json(201, { id: }) : Web::Answer.text(409, obstacle)
      rescue Error => e
        Web::Answer.text(409, "No snapshot can be taken: #{e.message}.")
      end

      def delete(id) = @snapshots.delete(id) ? Web::Answer.nothing : missing(id)

      def data(id) = found(id) { |snapshot| Web::Answer.data(snapshot.data) }

      def file(id)
        found(id) do |snapshot|
          Web::Answer.data(snapshot.pprof, { "content-disposition" => "attachment; filename=\"rperf-#{id}.pb.gz\"" })
        end
      end

      def difference(base, target)
        found(base) do |before|
          found(target) { |after| Web::Answer.data(@snapshots.compare(before, after)) }
        end
      end

      def found(id)
        snapshot = @snapshots.find(id)
        snapshot ? yield(snapshot) : missing(id)
      end

      def missing(id)
        Web::Answer.text(404, "There is no snapshot #{id} in process #{Process.pid}: " \
                              "it was dropped or deleted, or is another process's.")
      end
    end
    private_constant :Routes
  end
end
