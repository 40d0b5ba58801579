# frozen_string_literal: true

# The methods of the extension that lib/ doesn't call are for specs and benchmarks: they are in native/measure.rs,
# behind a feature of cargo that only checkouts turn on. bin/test lint sees to it that nothing else does.
RSpec.describe "The methods of Rperf::Native" do
  root = File.expand_path("../..", __dir__)

  it "are called by lib/ or exe/, but for those that only a checkout has" do
    native = Rperf.const_get(:Native)
    sources = Dir.glob("{lib,exe}/**/*", base: root).grep(%r{\.rb\z|\Aexe/}).map { |path| File.read("#{root}/#{path}") }
    called = sources.flat_map { |source| source.scan(/\bNative\.(?:method\(:)?(\w+[?!]?)/).flatten }
    extra = native.singleton_methods(false).map(&:to_s) - called
    measures = File.read("#{root}/ext/rperf/src/native/measure.rs").scan(/define_singleton_method\(\s*"([^"]+)"/)
    expect(extra).to match_array(measures.flatten)
  end
end
