# frozen_string_literal: true

require_relative "../support/object_graphs"

# Programs that hold known amounts by known names: each is with its holder, and the program doesn't notice.
RSpec.describe "rperf heap", vm: true, emulated: false, if: Gem::Platform.local.os == "linux" do
  include Ports

  mb = 1 << 20

  # A program that has done `code`, and does `rest` once "go" is there.
  def holding(code, rest: "sleep", **)
    program = <<~RUBY
      #{code}
      GC.start
      puts Rperf.listen
      sleep 0.01 until File.exist?("go")
      #{rest}
    RUBY
    listening(program, **) { |it| yield it.pid, it.lines.last }
  end

  def go = File.write(path_to("go"), "")

  def answer_of(*arguments)
    options = arguments.any?(Integer) ? ["--force"] : []
    outcome = rperf("heap", "--json", *options, *arguments.map(&:to_s))
    expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
    arguments.grep(Integer) { |pid| no_copy(pid) }
    JSON.parse(outcome.stdout).tap { |it| expect(it["whole"]).to be(true) if it["kind"] == "rperf heap" }
  end

  def refusal_of(*arguments)
    outcome = rperf("heap", *arguments.map(&:to_s))
    expect([outcome.stdout, outcome.status.exitstatus, outcome.stderr.lines.size]).to eq(["", 1, 1]), outcome.stderr
    outcome.stderr
  end

  def holder(answer, name)
    answer["holders"].find { |it| it["name"] == name } || raise("no #{name}: #{answer["holders"].first(12)}")
  end

  def no_copy(pid) = wait_until("the end of the copy") { copies(pid).empty? }

  # The copies of a program that send its objects.
  def copies(pid)
    command = File.read("/proc/#{pid}/cmdline")
    Dir["/proc/[0-9]*"].filter_map do |directory|
      next if directory == "/proc/#{pid}" || File.read("#{directory}/cmdline") != command

      File.basename(directory).to_i if File.read("#{directory}/oom_score_adj").to_i == 1000
    rescue SystemCallError
      nil
    end
  end

  # The command that asks a program for its objects.
  def asking(pid)
    Dir["/proc/[0-9]*/cmdline"].each do |path|
      return path[/\d+/].to_i if File.read(path).split("\0").last(2) == ["heap", pid.to_s]
    rescue SystemCallError
      nil
    end
    raise "no command"
  end

  # The files of a program, but for pipes.
  def descriptors(pid)
    Dir["/proc/#{pid}/fd/*"].filter_map do |path|
      File.readlink(path)
    rescue SystemCallError
      nil
    end.grep_v(/\Apipe:/).sort
  end

  leaky = <<~RUBY
    require "objspace"
    Item = Struct.new(:text)
    class Cart
      def initialize(bytes) = @items = [Item.new("x" * bytes)]
    end
    class Api
      @@cache = { rates: "c" * #{3 * mb} }
      @last = Array.new(10) { |i| i.to_s * #{mb / 10} }
    end
    CARTS = Hash.new
    500.times { |i| CARTS["cart \#{i}"] = Cart.new(100 * 1024) }
    thread = Thread.new do
      Thread.current.name = "worker"
      Thread.current[:page] = Array.new(20) { "y" * #{mb} }
      sleep
    end
    sleep 0.01 until thread[:page]&.size == 20 && thread.stop?
    def closure(bytes)
      secret = Array.new(10) { "z" * bytes }
      proc { secret.size }
    end
    $callback = closure(#{mb})
    def size(object, seen = {}.compare_by_identity)
      return 0 if seen[object] || object.is_a?(Module)
      seen[object] = true
      ObjectSpace.memsize_of(object) + ObjectSpace.reachable_objects_from(object).to_a.sum { |it| size(it, seen) }
    end
    File.write("size", size(CARTS).to_s)
  RUBY

  it "tells what each name holds, and on which path" do
    holding(leaky) do |pid, _|
      listed = answer_of(pid)
      carts = holder(listed, "CARTS")
      sum = File.read(path_to("size")).to_i
      expect(carts["retained_bytes"]).to be_within(0.02 * sum).of(sum)
      expect(carts["path"].map { |it| it.values_at("class", "name", "objects") })
        .to eq([["Cart", "", 500], ["Array", "@items", 500], ["Item", "", 500], ["String", ".text", 500]])
      expect(holder(listed, 'Thread "worker"[:page]')["retained_bytes"]).to be_within(0.02 * 20 * mb).of(20 * mb)
      callback = holder(listed, "$callback")
      expect(callback["class"]).to eq("Proc")
      expect(callback["retained_bytes"]).to be_within(0.02 * 10 * mb).of(10 * mb)
      expect(holder(listed, "class Api @@cache")["retained_bytes"]).to be_within(0.02 * 3 * mb).of(3 * mb)
      expect(holder(listed, "class Api @last")["retained_bytes"]).to be_within(0.05 * mb).of(mb)
      row = listed["classes"].find { |it| it["name"] == "Cart" }
      expect(row["objects"]).to eq(500)
      expect(row["retained_bytes"]).to be_within(0.05 * sum).of(sum)
      expect(listed["total"]["bytes"]).to be > 84 * mb
    end
  end

  it "tells what methods hold, and singleton methods" do
    code = <<~RUBY
      class Api; end
      def text(bytes) = "x" * bytes
      text(#{mb}).then { |page| Api.define_method(:page) { page } }
      text(#{2 * mb}).then { |page| Api.define_singleton_method(:page) { page } }
    RUBY
    holding(code) do |pid, _|
      listed = answer_of(pid)
      expect(holder(listed, "class Api (methods)")["retained_bytes"]).to be_within(0.05 * mb).of(mb)
      expect(holder(listed, "singleton methods of Api")["retained_bytes"]).to be_within(0.05 * mb).of(2 * mb)
    end
  end

  it "tells of a constant before variables of threads and fibers, and of stacks last" do
    code = <<~RUBY
      KEPT = { page: ["x" * #{mb}] }
      FIBER = Fiber.new { |page| Thread.current[:page] = page; Fiber.yield; page }
      FIBER.resume(KEPT[:page].first)
      THREAD = Thread.new(KEPT[:page]) { |pages| Thread.current[:pages] = pages; sleep; pages }
      POOL = [Fiber.new { local = "y" * #{2 * mb}; Fiber.yield; local }.tap(&:resume)]
      SHOP = [Class.new { @cache = "z" * #{3 * mb} }]
      sleep 0.01 until THREAD.stop?
    RUBY
    holding(code) do |pid, _|
      listed = answer_of(pid, "--class", "String")
      large = listed["paths"].select { |row| row["retained_bytes"] >= mb }
      expect(large.to_h { |row| [row["holder"], row["steps"].map(&:first)] })
        .to eq("KEPT" => %w[Hash Array String], "stack of a Fiber in POOL" => %w[String],
               "a class without a name @cache" => %w[String])
      expect(holder(listed, "KEPT and others")["retained_bytes"]).to be_within(0.05 * mb).of(mb)
      # Where rows overlap, they say so.
      shop = holder(listed, "SHOP")
      expect(shop["retained_bytes"]).to be_within(0.05 * mb).of(3 * mb)
      expect([shop["within"], holder(listed, "a class without a name @cache")["within"]]).to eq([nil, "SHOP"])
      page = rperf("heap", pid.to_s, "--force").stdout.dup.force_encoding("UTF-8")
      expect(page).to match(/  a class without a name @cache → String \(part of SHOP\)$/)
      expect(page).to include("\nWhat is part of another row counts there, too.\n")
    end
  end

  it "tells what the main script's local variables hold" do
    holding("big = Array.new(20_000) { |n| n.to_s * 20 }", rest: "p big.size") do |pid, _|
      main = holder(answer_of(pid), "local variables of the main script")
      expect([main["class"], main["objects"]]).to eq(["Array", 20_001])
    end
  end

  it "names the fields of whatever is a Struct, and its instance variables" do
    names = Array.new(12) { |number| "field_#{number}" }
    code = <<~RUBY
      Plain = Struct.new(:text)
      class Below < Plain
        def initialize(*) = (super; @own = "o" * #{mb})
      end
      Point = Data.define(:x, :text)
      Many = Struct.new(*#{names.map(&:to_sym)})
      Empty = Struct.new
      Named = Struct.new(:text, keyword_init: true).freeze
      alone = Plain.new("a" * #{mb})
      def alone.singleton = 1
      KEPT = {
        below: Below.new("b" * #{mb}), point: Point.new(x: 1, text: "p" * #{mb}), range: ("r"..("z" * #{mb})),
        many: Many.new(*Array.new(11), "m" * #{mb}), named: Named.new(text: "n" * #{mb}), alone:, empty: Empty.new
      }
    RUBY
    holding(code) do |pid, _|
      rows = answer_of(pid, "--class", "String")["paths"].select { |row| row["retained_bytes"] >= mb }
      steps = rows.map { |row| row["steps"].last(2).flatten }
      expect(steps).to contain_exactly(
        ["Below", "", "String", ".text"], ["Below", "", "String", "@own"], ["Point", "", "String", ".text"],
        ["Range", "", "String", ".end"], ["Many", "", "String", ".field_11"], ["Named", "", "String", ".text"],
        ["Plain", "", "String", ".text"]
      )
      expect(rows.map { |row| row["holder"] }.uniq).to eq(["KEPT"])
    end
  end

  it "prints tables, and paths to the instances of a class, and keeps no text of the program" do
    holding("#{leaky}\n$word = 'bananarama'") do |pid, socket|
      page = rperf("heap", pid.to_s).stdout.dup.force_encoding("UTF-8")
      expect(page).to match(/\A#{pid} .*: \d+\.\d\d MB in [\d,]+ objects, [\d,]+ references, Ruby #{RUBY_VERSION}, /)
      steps = "CARTS → Hash → 500 Cart → 500 @items Array → 500 Item → 500 .text String"
      expect(page).to match(/^ *4\d\.\d\d MB +\d+\.\d% +[\d,]+  #{steps}$/)
      expect(page).to match(/^ *bytes +bytes% +objects +retained  class$/)
      paths = rperf("heap", pid.to_s, "--force", "--class", "Item").stdout.dup.force_encoding("UTF-8")
      expect(paths).to match(/^ *4\d\.\d\d MB +\d+\.\d KB +500  CARTS → Hash → Cart → @items Array → Item$/)
      stream, = ObjectGraphs.ask(socket, force: true)
      expect(stream.read.b).not_to include("bananarama")
    end
  end

  it "has no collection in the copy, however often the program has one" do
    code = <<~RUBY
      50.times { |i| Object.const_set("Module\#{i}", Module.new { const_set(:TEXT, "x" * 1000) }) }
    RUBY
    holding(code, rest: "GC.stress = true; File.write('done', ''); sleep") do |pid, _|
      go
      wait_until("the stress") { File.exist?(path_to("done")) }
      expect(holder(answer_of(pid), "Module7::TEXT")["retained_bytes"]).to be > 1000
    end
  end

  it "keeps rows in a file, shows them, and says what has changed since" do
    rest = "50.times { |i| CARTS[i] = Cart.new(#{mb}) }; File.write('done', ''); sleep"
    holding(leaky, rest:) do |pid, _|
      kept = rperf("heap", pid.to_s, "-o", "old.json")
      expect([kept.stdout, kept.stderr]).to match(["", /\Arperf: wrote old.json \(\d+\.\d\d MB of objects\)\n\z/])
      expect(answer_of("old.json")).to eq(JSON.parse(File.read(path_to("old.json"))))
      expect(rperf("heap", "-n1", "old.json").stdout).to include("more, -n 0 shows them")
      go
      wait_until("more carts") { File.exist?(path_to("done")) }
      changes = answer_of("--base", "old.json", pid)
      row = changes["holders"].find { |it| it["name"] == "CARTS" }
      expect(row["change"]["bytes"]).to be_within(mb).of(50 * mb)
      expect(changes["classes"].find { |it| it["name"] == "Cart" }["change"]["objects"]).to eq(50)
      expect(rperf("heap", "--base", "old.json", "old.json").stdout.scan("(nothing has changed)").size).to eq(2)
    end
  end

  describe "beside ObjectSpace.dump_all" do
    classes = 60
    random = <<~RUBY
      require "objspace"
      random = Random.new(4711)
      nodes = Array.new(#{classes}) { |i| Object.const_set("Node\#{i}", Class.new).new }
      nodes.each_with_index do |node, i|
        random.rand(3).times { |j| node.instance_variable_set("@to_\#{j}", nodes[random.rand(i..#{classes - 1})]) }
        node.instance_variable_set(:@text, "t" * random.rand(1000))
      end
      GRAPH = nodes.first(4)
      nodes = nil
    RUBY

    # Of each object in the dump by its address: class, bytes, references; and the roots.
    def dumped(path)
      objects = {}
      roots = []
      File.foreach(path) do |line|
        entry = JSON.parse(line)
        next roots.concat(entry["references"] || []) if entry["type"] == "ROOT"

        objects[entry["address"]] = entry
      end
      [objects, roots]
    end

    # What an object refers to, also by the object of the VM's that has its instance variables in later versions.
    def variables(objects, object)
      (object["references"] || []).flat_map do |address|
        fields = objects[address]
        fields && fields["imemo_type"] == "fields" ? fields["references"] || [] : [address]
      end
    end

    def reached(objects, roots, without)
      seen = {}
      open = roots.dup
      while (address = open.pop)
        next if seen[address] || address == without || !objects[address]

        seen[address] = true
        open.concat(objects[address]["references"] || [])
      end
      seen
    end

    it "has the same objects, references and dominators" do
      rest = "GC.start; File.open('dump', 'w') { |io| ObjectSpace.dump_all(output: io) }; File.write('done', ''); sleep"
      holding(random, rest:) do |pid, socket|
        graph = ObjectGraphs.new(ObjectGraphs.ask(socket).first.read)
        go
        wait_until("the dump") { File.exist?(path_to("done")) }
        objects, roots = dumped(path_to("dump"))
        names = objects.values.filter_map { |it| [it["address"], it["name"]] if it["name"] }.to_h
        node = ->(address) { names[objects[address]&.fetch("class", nil)]&.then { |it| it if it.start_with?("Node") } }
        expected = objects.keys.select(&node).to_h do |address|
          it = objects[address]
          # The dump leaves out what an object refers to twice, or itself.
          [node[address], [it["memsize"], variables(objects, it).filter_map(&node).uniq.sort - [node[address]]]]
        end
        class_names = graph.class_names
        found = graph.nodes.zip(class_names).select { |_, name| name&.start_with?("Node") }.to_h do |it, name|
          others = it.references.filter_map { |target| class_names[target] if class_names[target]&.start_with?("Node") }
          [name, [it.bytes, others.uniq.sort - [name]]]
        end
        # What nothing refers to may be there in one of the two.
        all = reached(objects, roots, nil)
        alive = objects.keys.select { |address| node[address] && all[address] }
        expect(alive.size).to be > classes / 3
        expect(found.slice(*alive.map(&node))).to eq(expected.slice(*alive.map(&node)))
        rows = answer_of(pid)["classes"].to_h { |it| [it["name"], it["retained_bytes"]] }
        retained = alive.to_h do |address|
          left = reached(objects, roots, address)
          [node[address], all.keys.sum { |it| left[it] ? 0 : objects[it]["memsize"].to_i }]
        end
        expect(rows.slice(*retained.keys)).to eq(retained)
      end
    end
  end

  it "leaves no child that the program could see, and no signal of one" do
    code = <<~RUBY
      $seen = Queue.new
      trap(:CHLD) { $seen << "SIGCHLD" }
      own = spawn("sleep 300")
      Thread.new { $seen << "child \#{Process.wait(-1)}" }
      at_exit { $seen << "at_exit" }
      module Watched
        def _fork = super.tap { $seen << "fork" }
      end
      Process.singleton_class.prepend(Watched)
    RUBY
    rest = "puts $seen.size.times.map { $seen.pop }.inspect; Process.kill(:KILL, own); " \
           "sleep 0.01 while $seen.empty?; puts $seen.pop; sleep"
    holding(code, rest:) do |pid, _|
      answer_of(pid)
      expect(File.read("/proc/#{pid}/task/#{pid}/children").split.size).to eq(1)
      go
      wait_until("what the program has seen") { File.readlines(path_to(".listening1")).size == 3 }
      # The program notices its own child.
      expect(File.readlines(path_to(".listening1"), chomp: true).last(2)).to match(["[]", /SIGCHLD|child/])
    end
  end

  it "doesn't change what a program does" do
    code = <<~RUBY
      threads = Array.new(6) do |i|
        Thread.new do
          random = Random.new(i)
          sum = 0
          until File.exist?("go")
            words = Array.new(2000) { random.bytes(random.rand(3000)) }
            sum += words.sum(&:size) - words.sum { |it| it.dup.size }
            IO.pipe { |reads, writes| writes << "x"; sum += reads.readpartial(1).size }
          end
          sum.positive?
        end
      end
    RUBY
    rest = "puts threads.map(&:value).inspect, GC.disable, Process.clock_gettime(Process::CLOCK_MONOTONIC).class; sleep"
    holding(code, rest:) do |pid, _|
      answer_of(pid)
      # The connection of this question may be there still.
      before = descriptors(pid)
      answer_of(pid)
      more = -> { descriptors(pid) - before }
      wait_until("the same files", detail: -> { more.call.inspect }) { more.call.empty? }
      go
      wait_until("results") { File.readlines(path_to(".listening1")).size == 4 }
      expect(File.readlines(path_to(".listening1"), chomp: true).drop(1)).to eq([[true].*(6).inspect, "false", "Float"])
    end
  end

  describe "while the copy is under way" do
    # Its client takes in nothing, so it waits.
    def waiting(pid, socket)
      connection, head = ObjectGraphs.ask(socket)
      expect(head).to start_with("HTTP/1.1 200 ")
      copy = nil
      wait_until("a copy") { copy = copies(pid).first }
      yield copy, connection
    end

    it "has only the connection, no core, and no handler; another one isn't made; and it can be killed" do
      holding("$objects = Array.new(300_000) { Object.new }") do |pid, socket|
        waiting(pid, socket) do |copy, connection|
          status = File.read("/proc/#{copy}/status")
          expect(status[/^PPid:\s+(\d+)/, 1].to_i).not_to eq(pid)
          # Beside those that the C library has for itself.
          expect(status[/^SigCgt:\s+(\h+)/, 1].hex & 0x7fff_ffff).to eq(0)
          # Nobody else looks into it, as it leaves no core either.
          expect(Dir["/proc/#{copy}/fd/*"].size).to eq(Process.uid.zero? ? 1 : 0)
          expect(File.read("/proc/#{copy}/limits")).to match(/^Max core file size +0 +0 /)
          expect(refusal_of(pid)).to include("a snapshot of its objects is under way already")
          Process.kill(:KILL, copy)
          expect { ObjectGraphs.new("rpheap2\n#{connection.read}") }.to raise_error(RuntimeError)
          no_copy(pid)
          expect(refusal_of(pid)).to match(/less than 10 s old/)
          expect(rperf("stacks", pid.to_s).status).to be_success
        end
      end
    end

    it "ends with its client" do
      holding("$objects = Array.new(300_000) { Object.new }") do |pid, socket|
        waiting(pid, socket) do |_, connection|
          connection.close
          no_copy(pid)
        end
      end
    end

    it "is told in a line if it was ended" do
      holding("$objects = Array.new(2_000_000) { Object.new }") do |pid, _|
        command = Thread.new { rperf("heap", pid.to_s) }
        copy = nil
        wait_until("a copy") { copy = copies(pid).first }
        # The client takes in nothing more, so the copy can't come to its end.
        asking = asking(pid)
        Process.kill(:STOP, asking)
        Process.kill(:KILL, copy)
        Process.kill(:CONT, asking)
        expect(command.value.stderr).to match(/\Arperf: #{pid}: the copy of the program was ended before it had sent/)
      end
    end
  end

  it "refuses programs with other Ractors" do
    holding("$ractor = Ractor.new { sleep }; sleep 0.1", env: { "RUBYOPT" => "-W0" }) do |pid, _|
      expect(refusal_of(pid)).to include("the program has other Ractors")
    end
  end

  it "refuses in a line what is no program and no file of its own" do
    write_file("other.json", "{}")
    write_file("cut.json", '{"kind":"rperf heap","version":1,"classes":[{"na')
    write_file("later.json", '{"kind":"rperf heap","version":2}')
    {
      ["2147483646"] => [1, /there is no process 2147483646/],
      ["0"] => [2, /'0': processes have numbers from 1 on/],
      [Process.pid.to_s] => [1, /has no port/],
      ["none.json"] => [2, /none.json.*no such file/],
      ["other.json"] => [2, /other.json: it is no file of 'rperf heap -o'/],
      ["cut.json"] => [2, /cut.json: it ends early: it was cut, so write it again/],
      ["--base", "other.json", "1", "-o", "x"] => [2, /leave --base out/],
      ["--class", "A", "other.json"] => [2, /ask the program, by its PID/],
      ["-n", "x", "1"] => [2, /-n x: rows are a number/]
    }.each do |arguments, (status, line)|
      outcome = rperf("heap", *arguments)
      expect([outcome.status.exitstatus, outcome.stderr.lines.size]).to eq([status, 1]), outcome.stderr
      expect(outcome.stderr).to match(line)
    end
  end

  it "runs none of the program's code" do
    code = <<~RUBY
      class Trap
        %i[inspect to_s name class hash == eql? respond_to? method_missing encoding].each do |name|
          define_method(name) { |*| File.write("ran", name.to_s) }
        end
      end
      TRAP = $trap = Trap.new
      class << TRAP.singleton_class
        def name = File.write("ran", "name")
      end
      Thread.current[:trap] = TRAP
    RUBY
    holding(code) do |pid, _|
      expect(answer_of(pid)["classes"].map { |it| it["name"] }).to include("Trap")
      expect(File.exist?(path_to("ran"))).to be(false)
    end
  end
end
