# frozen_string_literal: true

# A program may redefine any method. Its profile is delivered all the same, because what is done at its end calls none
# of them.
RSpec.describe "A program that has redefined a method", vm: true do
  # Each method of these in turn, in a child of its own: it redefines the method, and ends as ENDS[how] says.
  redefining = <<~'RUBY'
    owner, how, body = ARGV
    BODIES = { "returns" => proc { |*, **| 1.5 }, "raises" => proc { |*, **| 1.no_such_method } }.freeze
    FORK, EXEC, EXIT, WAIT = %i[fork exec exit! wait].map { |name| Process.method(name) }
    ENDS = {
      "end" => proc {},
      "exit!" => proc { EXIT.call(0) },
      "exec" => proc { EXEC.call("/bin/true") },
      "fork" => proc { WAIT.call(FORK.call {}) }
    }.freeze
    # What the VM calls itself, and what begins or ends a process here: without it there is no end to look at.
    OWN = %i[_fork call exec exit! initialize method_added respond_to_missing? singleton_method_added warn].freeze
    scope = %w[Process Ractor].include?(owner) ? Object.const_get(owner).singleton_class : Object.const_get(owner)
    names = (scope.instance_methods(false) + scope.private_instance_methods(false)).sort - OWN
    # What rperf calls its own.
    names = names.reject { |name| name.start_with?("__rperf_") }
    finish = ENDS.fetch(how)
    body = BODIES.fetch(body)
    DEFINE = Module.instance_method(:define_method)
    $VERBOSE = nil
    children = names.to_h do |name|
      pid = FORK.call do
        $stderr.reopen("#{name.object_id}.err")
        DEFINE.bind_call(scope, name, &body)
        finish.call
      end
      WAIT.call(pid)
      [pid, "#{name} #{$?.exitstatus || "by signal #{$?.termsig}"}"]
    end
    File.write("children", children.map { |pid, text| "#{pid} #{text}\n" }.join)
  RUBY

  def profiled_processes(path)
    read_profile(path).fetch(:label_sets).filter_map { |labels| labels[:"%pid"] }.map(&:to_i)
  end

  def children = File.readlines(path_to("children"), chomp: true).to_h { |line| [line.to_i, line[/ (.*)/, 1]] }

  def ends_alone(*program)
    outcome = run(ruby, *program)
    expect(outcome.status).to be_success, outcome.stderr
    children.values
  end

  # Each child has its profile, and says nothing of rperf.
  def ends_profiled(*program, least:)
    outcome = rperf("record", "-o", "p.pb.gz", "-m", "wall", "--", ruby, *program)
    expect(outcome.status).to be_success, outcome.stderr
    profiled = profiled_processes(path_to("p.pb.gz")).uniq
    expect(children.except(*profiled).values).to eq([])
    expect(profiled.size).to be > least * children.size
    expect(Dir[path_to("*.err")].flat_map { |path| File.readlines(path).grep(/rperf/) }).to eq([])
    children.values
  end

  # The children that end otherwise if they are profiled, with both ends.
  def changed_ends(script, owner, how, body)
    alone = ends_alone(script, owner, how, body)
    # With the children's own, some of which may end before their first sample on a busy machine: the last Ruby
    # code before them is that of the hook of fork.
    profiled = ends_profiled(script, owner, how, body, least: how == "fork" ? 1.8 : 0)
    (alone - profiled) | (profiled - alone)
  end

  ends = Commands::LONG ? %w[end exit! exec fork].product(%w[returns raises]) : [%w[end returns], %w[fork raises]]
  owners = %w[Integer String Array Hash Kernel Module Process Method Thread Symbol Exception Ractor]
  owners.product(ends).each do |owner, (how, body)|
    it "has its profile at its end (#{owner}, #{how}, #{body})" do
      script = write_file("program.rb", redefining)
      changed = changed_ends(script, owner, how, body)
      # On a busy machine a child can end otherwise by itself; what rperf changes is changed each time.
      changed &= changed_ends(script, owner, how, body) if changed.any?
      expect(changed).to eq([])
    end
  end

  ["Array#count", "Array#include?", "BasicObject#method_missing", "Hash#[]", "Integer#-", "Integer#=="].each do |method|
    it "has its profile and its page without a command, too (#{method})" do
      owner, name = method.split("#")
      code = "$VERBOSE = nil; i = 0; i += 1 while i < 3_000_000; #{owner}.define_method(:#{name}) { |*, **| 1.5 }"
      env = { "RPERF_ENABLED" => "1", "RPERF_STAT" => "1", "RPERF_OUTPUT" => "p.pb.gz" }
      outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", code, env:)
      expect([outcome.status, outcome.stderr]).to match([be_success, /\A\n Performance stats for '-e':\n/])
      expect(read_profile(path_to("p.pb.gz"))[:samples]).not_to be_empty
    end
  end

  it "has the file that Rperf.start was asked for" do
    program = write_file("own.rb", <<~RUBY)
      require "rperf"
      $VERBOSE = nil
      Rperf.start(mode: :wall, output: "p.pb.gz")
      i = 0
      i += 1 while i < 3_000_000
      [Integer, %i[- == < zero?], String, %i[== to_s to_sym], Array, %i[count first empty? include? <<],
       Hash, %i[[] fetch to_h key?], Module, %i[===], Kernel, %i[nil? is_a? respond_to?]].each_slice(2) do |owner, names|
        names.each { |name| owner.define_method(name) { |*, **| 1.5 } }
      end
    RUBY
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", program)
    expect([outcome.status, outcome.stderr]).to match([be_success, ""])
    expect(read_profile(path_to("p.pb.gz"))[:samples]).not_to be_empty
  end
end
