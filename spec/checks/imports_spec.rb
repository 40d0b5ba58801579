# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require_relative "../../bin/support/imports"

RSpec.describe "the check of imports" do
  around do |example|
    Dir.mktmpdir do |root|
      @root = root
      example.run
    end
  end

  def plant(files)
    files.each do |path, content|
      path = File.join(@root, path)
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, content)
    end
  end

  def copy_project
    sources = Dir.glob("{crates/*/src,ext/*/src,lib}/**/*.{rs,rb}", base: Commands::ROOT)
    plant(sources.to_h { |source| [source, File.read(File.join(Commands::ROOT, source))] })
  end

  def append(path, text) = File.write(File.join(@root, path), text, mode: "a")

  def problems = Imports.problems(@root)

  def crate(files) = plant(files.transform_keys { |name| "crates/one/src/#{name}.rs" })
  def library(files) = plant(files.transform_keys { |name| "lib/#{name}.rb" })

  describe "in a copy of this project" do
    before { copy_project }

    it "finds nothing" do
      expect(problems).to eq([])
    end

    it "names a circle that is planted in a crate, and where it is" do
      append("crates/rperf-sampling/src/values.rs", "use crate::counters::SessionCounters;\n")
      expect(problems).to contain_exactly(
        match(%r{\Acrates/rperf-sampling.*: circle.*values}).and(match(%r{src/values.rs:\d+: values uses counters}))
      )
    end

    it "names a floor of the bridge that uses a higher one" do
      floor = Dir.glob("ext/rperf/src/probes/sampling/*.rs", base: Commands::ROOT).first
      append(floor, "fn planted() { crate::probes::planted() }\n")
      expect(problems).to include(match(%r{probes/sampling is below probes and must not use it\n  #{floor}:\d+: }))
    end

    it "names a directory of the bridge that uses one of a higher floor, and the circle" do
      append("ext/rperf/src/ruby/threads.rs", "use crate::tracing::section;\n")
      append("ext/rperf/src/sampling/step.rs", "use crate::tracing::section;\n")
      expect(problems).to include(
        match(/: ruby is below tracing and must not use it/), match(/: sampling is below tracing and must not use it/),
        match(/: circle (?:sampling -> tracing -> sampling|tracing -> sampling -> tracing)$/)
      )
    end

    it "names a part of the bridge whose floor nobody has said" do
      plant("ext/rperf/src/probes/planted.rs" => "pub fn planted() {}\n")
      expect(problems).to contain_exactly(match(%r{say in bin/support/imports.rb .* floor probes/planted is}))
    end

    it "names a floor of lib/ that uses a higher one" do
      append("lib/rperf/errors.rb", "module Rperf\n  Planted = Rperf::Viewer\nend\n")
      expect(problems).to include(match(%r{rperf/errors is below rperf/viewer .*\n  lib/rperf/errors.rb:}))
    end
  end

  describe "of Rust files" do
    it "follows braces, aliases, short paths and the names that a module hands on" do
      crate("lib" => "mod a;\nmod b;\nmod c;\npub use c::See;\n",
            "a" => "use crate::{\n    b::{self as bee, Bee},\n};\n",
            "b" => "fn f() -> crate::See { todo() }\n",
            "c" => "pub struct See;\nfn g(it: super::a::A) {}\n")
      expect(problems).to eq([<<~CIRCLE.chomp])
        crates/one/src: circle a -> b -> c -> a
          crates/one/src/a.rs:1: a uses b
          crates/one/src/b.rs:1: b uses c
          crates/one/src/c.rs:2: c uses a
      CIRCLE
    end

    it "takes a directory and the file of its name for one part of the directory above" do
      crate("lib" => "mod timer;\nmod worker;\n", "timer" => "mod signal;\n",
            "timer/signal" => "use crate::worker::Worker;\n", "worker" => "use crate::timer::Kind;\n")
      expect(problems).to contain_exactly(a_string_starting_with("crates/one/src: circle timer -> worker -> timer"))
    end

    it "finds a parent and a child that need each other" do
      crate("lib" => "mod a;\n", "a" => "mod b;\npub struct A;\nfn f() { b::g() }\n",
            "a/b" => "use super::A;\n")
      expect(problems).to contain_exactly(a_string_starting_with("crates/one/src: circle a -> a/b -> a"))
    end

    it "lets a parent declare and name a child that uses it" do
      crate("lib" => "mod a;\n", "a" => "mod b;\npub use b::B;\npub struct A;\n", "a/b" => "use super::A;\n")
      expect(problems).to eq([])
    end

    it "takes all names that a module hands on for a use of where they are" do
      crate("lib" => "mod a;\nmod b;\n", "a" => "pub use crate::b::*;\n", "b" => "use crate::a::A;\n")
      expect(problems).to contain_exactly(a_string_starting_with("crates/one/src: circle a -> b -> a"))
    end

    it "leaves out tests, comments, text and other crates" do
      crate("lib" => "mod a;\nmod b;\n", "a" => "use crate::b::B;\n",
            "b" => <<~RUST, "b/tests" => "use crate::a::A;\n")
              //! See [`crate::a::A`].
              use other_crate::a::A;
              const TEXT: &str = "\\"crate::a::A";
              const QUOTES: (char, char, u8) = ('"', '\\'', b'"');
              const RAW: &str = r#"" crate::a::A"#;
              #[cfg(test)]
              use crate::a::{A, Other};
              #[cfg(test)]
              mod tests;
              #[cfg(test)]
              mod more_tests {
                  use crate::a::A;
              }
            RUST
      expect(problems).to eq([])
    end
  end

  describe "of Ruby files" do
    it "finds a circle of files that require each other" do
      library("one" => "require_relative \"two\"\nclass One; end\n",
              "two" => "require_relative \"one\"\nclass Two; end\n")
      expect(problems).to eq([<<~CIRCLE.chomp])
        lib: circle one -> two -> one
          lib/one.rb:1: one uses two
          lib/two.rb:1: two uses one
      CIRCLE
    end

    it "finds one of constants, and of methods of a module that several files open" do
      library("rperf/session" => "module Rperf\n  module Session\n    def self.go = Rperf.send(:leave)\n  end\nend\n",
              "rperf/api" => "module Rperf\n  def self.start = Session.go\n  def self.leave = nil\nend\n",
              "rperf/other" => "module Rperf\n  def self.other = nil\nend\n")
      expect(problems.grep(/circle/)).to contain_exactly(
        match(%r{\Alib: circle rperf/(?:api -> rperf/session -> rperf/api|session -> rperf/api -> rperf/session)$})
      )
    end

    it "looks a constant up in the innermost module first" do
      library("a" => "module A\n  Page = Data.define\n  def self.page = Page.new\nend\n",
              "b" => "class Page\n  def self.all = A.page\nend\n")
      expect(problems).to eq([])
    end

    it "takes a file that only requires others for a list of them" do
      library("all" => "require_relative \"all/one\"\nrequire_relative \"two\"\n",
              "two" => "require_relative \"all/one\"\nclass Two; end\n", "all/one" => "class One; end\n")
      expect(problems).to eq([])
    end
  end
end
