# frozen_string_literal: true

require_relative "../rack/site"
require_relative "../support/interleave"
require_relative "../support/profilers"

module Overhead
  # The Rack application under load, with each profiler in turn.
  class Web
    REQUESTS = 1000

    def initialize(options)
      @options = options
      @requests = [(REQUESTS * options[:scale]).ceil, Site::CONNECTIONS].max
    end

    # @return [Array(Hash{String => Array<Hash>}, String)] as Programs#run
    def run
      return [in_turn(@options[:profilers]), "processes"] unless @options[:in_process]

      [alternating(@options[:profilers]), "alternating"]
    end

    private

    def in_turn(names)
      Bench::Interleave.call(names, runs: @options[:runs], warm_up: false) do |name|
        Site.open do |site|
          measure(site, name).merge(peak_kb: site.command("memory")[:peak_kb])
        end
      end
    end

    def alternating(names)
      Site.open do |site|
        Bench::Interleave.call(names, runs: @options[:runs]) { |name| measure(site, name) }
      end
    end

    def measure(site, name)
      site.command("start", name, @options[:frequency])
      warm_up = (@requests * @options[:warm_up]).ceil
      site.load(warm_up) if warm_up.positive?
      site.command("measure")
      load = site.load(@requests)
      load.merge(site.command("stop"))
    end
  end
end
