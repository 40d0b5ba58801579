# frozen_string_literal: true

require "fileutils"

RSpec.describe "call graphs" do
  main = ["/app/main.rb", "<main>"]
  total = ["/app/order.rb", "Order#total"]
  block = ["/app/order.rb", "block in Order#total"]
  sort = ["<C method>", "Array#sort"]
  small = ["/app/order.rb", "Order#small"]

  graphviz = ENV.fetch("PATH").split(":").any? { |directory| File.executable?(File.join(directory, "dot")) }
  without_graphviz = "no Graphviz: not tested what it makes of call graphs" unless graphviz

  # Writes a profile of wall time in which these stacks, deepest frame first, have so many samples of a millisecond.
  def save(name, stacks)
    rows = stacks.map { |frames, count, thread = 1| [frames, count * 1_000_000, thread, 0, count, count * 500_000] }
    Rperf.save(path_to(name), { mode: :wall, frequency: 1000, duration_ns: 10**9, samples: rows })
    name
  end

  before do
    save("rperf.data", [[[sort, block, total, main], 400], [[total, main], 100], [[main], 497, 2],
                        [[sort, small, main], 3]])
  end

  define_method(:dot) do |*arguments|
    graph = rperf("report", "--dot", *arguments).stdout.force_encoding("UTF-8")
    accepted(graph) if graphviz
    graph
  end

  # Graphviz takes the graph without a word.
  def accepted(graph)
    outcome = run("dot", "-Tcanon", input: graph)
    expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
  end

  # The name of each node, and the names and text of each edge.
  def nodes(dot) = dot.scan(/^  n\d+ \[label="(.*?)\\nself/).flatten.map { |name| name.gsub("\\n", "") }

  def edges(dot)
    names = nodes(dot)
    dot.scan(/^  n(\d+) -> n(\d+) \[label=" *([^"]*)".*?( style=dotted)?\]$/).map do |caller, callee, text, dots|
      [names[caller.to_i], names[callee.to_i], text, *("dotted" if dots)]
    end
  end

  # The command with only these directories to find programs in.
  def with_path(path, *) = run(*rperf_command("report", "--svg", *), env: { "PATH" => path })

  # A program of this name that is this script of the shell.
  def add_program(name, script)
    FileUtils.mkdir_p(path_to("bin"))
    write_file("bin/#{name}", "#!/bin/sh\n#{script}\n").tap { |path| File.chmod(0o755, path) }
    path_to("bin")
  end

  describe "rperf report --dot" do
    it "has each method once, with what calls it" do
      graph = dot
      expect(nodes(graph)).to eq(%w[<main> Order#total Array#sort] + ["block in Order#total"])
      expect(edges(graph)).to contain_exactly(
        ["<main>", "Order#total", "500.0 ms"], ["Order#total", "block in Order#total", "400.0 ms"],
        ["block in Order#total", "Array#sort", "400.0 ms"]
      )
      expect(graph).to include(
        "wall, 1,000.0 ms, 1,000 samples, duration 1.000 s; sampled, so calls are not counted\\l",
        "Showing 4 of 5 methods; cut: 1 of less than 0.5%\\l",
        '[label="Order#total\nself 100.0 ms (10.0%)\ntotal 500.0 ms (50.0%)"'
      )
      expect(dot).to eq(graph)
    end

    it "is written to files by their names, or by --format" do
      [%w[-o a.dot], %w[-o b.gv], %w[--format dot -o c], %w[--dot -o d.txt]].each do |arguments|
        outcome = rperf("report", *arguments)
        expect([outcome.status.exitstatus, outcome.stdout]).to eq([0, ""])
        expect(outcome.stderr).to match(/\Arperf: wrote #{arguments.last} \(\d+ KB\)\n\z/)
        expect(File.read(path_to(arguments.last))).to eq(dot)
      end
      rperf("record", "--format", "dot", "-o", "e", ruby, "-e", "1")
      expect(recorded = File.read(path_to("e"))).to start_with("digraph rperf {\n")
      accepted(recorded) if graphviz
    end

    it "cuts by number and shares, as pprof does" do
      expect(nodes(dot("--nodefraction", "0"))).to include("Order#small")
      graph = dot("--nodecount", "2")
      expect(edges(graph)).to eq([["<main>", "Array#sort", "403.0 ms", "dotted"]])
      expect(graph).to include("cut: 1 of less than 0.5%, 2 beyond 2")
      graph = dot("--nodefraction", "0", "--edgefraction", "0.01")
      expect(edges(graph)).to include(["<main>", "Order#small", "3.0 ms"])
      expect(graph).to include("1 arrows of less than 1%")
    end

    it "is of classes, files or threads, and of what filters leave" do
      expect(edges(dot("--by", "class", "--nodefraction", "0"))).to include(
        ["<main>", "Order", "503.0 ms"], ["Order", "Order", "400.0 ms"], ["Order", "Array", "403.0 ms"]
      )
      expect(nodes(dot("--by", "file"))).to eq(%w[main.rb order.rb] + ["<C method>"])
      expect(dot("--by", "thread")).to match(/subgraph cluster_\d \{ label="thread 2".* n\d+ \}$/)
      expect(dot("--clusters")).to match(/subgraph cluster_0 \{ label="Order".* n\d+ n\d+ \}$/)
      expect(nodes(dot("--focus", "sort", "--hide", "block"))).to eq(%w[<main> Array#sort Order#total])
      expect(dot("--focus", "sort")).to include("of which 403.0 ms (40.3%) are left")
    end

    it "has names that are no markup", skip: without_graphviz do
      odd = ["\"] x [label=\"y", "\\", "\\N\\", "a\nb", "<b>c</b>", "&lt;", "n0 -> n1;", "x" * 100_000]
      save("odd.pb.gz", odd.map { |name| [[[name, name], main], 1] })
      graph = dot("odd.pb.gz")
      expect(graph.bytesize).to be < 30_000
      rperf("report", "--svg", "odd.pb.gz")
      svg = File.read(path_to("rperf.svg"))
      expect(svg).to include("&lt;b&gt;c&lt;/b&gt;")
      expect(svg).not_to include("<b>")
    end
  end

  describe "rperf report --svg" do
    it "draws a picture that loads nothing", skip: without_graphviz do
      outcome = rperf("report", "--svg")
      expect(outcome.stderr).to match(/\Arperf: wrote .*rperf\.svg \(\d+ KB\)\n\z/)
      svg = File.read(path_to("rperf.svg"))
      expect(svg).to include("Order#total", "total 500.0 ms (50.0%)").and(end_with("</svg>\n"))
      expect(svg.gsub(/ xmlns(:xlink)?="[^"]*"/, "")).not_to match(/http|href|DOCTYPE|<script|<image/)
      rperf("report", "-o", "same.svg")
      expect(File.read(path_to("same.svg"))).to eq(svg)
      expect(rperf("report", "--svg", "-o", "/dev/stdout").stdout).to eq(svg)
    end

    it "says how to get Graphviz where it is missing, and writes the graph for it", emulated: false do
      write_file("kept.dot", "kept")
      outcome = with_path("/nonexistent", "-o", "kept.svg")
      expect([outcome.status.exitstatus, outcome.stdout]).to eq([1, ""])
      expect(outcome.stderr)
        .to match(/\Arperf: Graphviz is needed .*apt-get install graphviz.* Wrote .*kept\.svg\.dot instead\n\z/)
      expect(File.read(path_to("kept.svg.dot"))).to eq(dot)
      expect(File.read(path_to("kept.dot"))).to eq("kept")
      expect(File.exist?(path_to("kept.svg"))).to be(false)
      outcome = with_path("/nonexistent", "-o", "/dev/stdout")
      expect([outcome.stdout, outcome.stderr.lines.size]).to eq(["", 1])
    end

    it "does not take a failure for a picture" do
      path = add_program("dot", "echo 'Error: out of luck' >&2; exit 9")
      outcome = with_path("#{path}:#{ENV.fetch("PATH")}")
      expect(outcome.status.exitstatus).to eq(1)
      expect(outcome.stderr)
        .to match(/has not drawn the graph: it ended with status 9 \(Error: out of luck\).*rperf\.svg\.dot/)
      add_program("dot", "kill -SEGV $$")
      expect(with_path("#{path}:#{ENV.fetch("PATH")}").stderr).to include("it was ended by SIGSEGV")
    end

    it "ends Graphviz with itself" do
      path = add_program("dot", "echo $$ > dot.pid.new; mv dot.pid.new dot.pid; exec sleep 100")
      rperf = Process.spawn({ "PATH" => "#{path}:#{ENV.fetch("PATH")}" }, *rperf_command("report", "--svg"),
                            chdir: directory, err: File::NULL)
      wait_until("picture in the making") { File.exist?(path_to("dot.pid")) }
      Process.kill(:TERM, rperf)
      expect(Process.wait2(rperf).last.termsig).to eq(Signal.list["TERM"])
      expect { Process.kill(0, File.read(path_to("dot.pid")).to_i) }.to raise_error(Errno::ESRCH)
    end
  end

  {
    %w[--dot --svg] => "--dot and --svg can't be combined: give one of them",
    %w[--nodecount 5] => "--nodecount goes with --dot or --svg",
    %w[--top --clusters] => "--clusters goes with --dot or --svg, not with --top",
    %w[--dot --nodecount x] => "--nodecount must be a number of nodes, 0 for all, not 'x'",
    %w[--svg --nodefraction 5] => "--nodefraction must be a share from 0 to 1, such as 0.01, not '5'",
    %w[--dot --edgefraction -1] => "--edgefraction must be a share from 0 to 1, such as 0.01, not '-1'",
    %w[--dot --by state] => "--by state, --by op and --by label:KEY go with --top, not with --dot or --svg",
    %w[--dot --by file --clusters] => "--clusters are of methods: it goes with --by method only",
    %w[--dot -n 3] => "-n goes with --top, --methods, --tree, --boot, --tests, --ops, --gc, --callers, " \
                      "--annotate, --format json or --format markdown, not with --dot",
    %w[--svg -o /no/such/x.svg] => "-o must be in a directory that exists, not '/no/such/x.svg'"
  }.each do |arguments, message|
    it "refuses #{arguments.join(" ")} in one line" do
      outcome = rperf("report", *arguments)
      expect([outcome.status.exitstatus, outcome.stdout, outcome.stderr]).to eq([2, "", "rperf: #{message}\n"])
    end
  end
end
