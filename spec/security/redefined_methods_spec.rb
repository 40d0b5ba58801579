# frozen_string_literal: true

# A program may redefine any method. Its profile is delivered all the same, because what is done at its end calls none
# of them.
RSpec.describe "A program that has redefined a method", vm: true do
  # Each method of these in turn, in a child of its own: it redefines the method, and ends as ENDS[how] says.
  program = <<~'RUBY'
    owner, how, body = ARGV
    BODIES = { "returns" => proc { |*, **| 1.5 }, "raises" => proc { |*, **| 1.no_such_method } }.freeze
    FORK, EXEC, EXIT, WAIT = %i[fork exec exit! wait].map { |name| Process.method(name) }
    ENDS = {
      "end" => proc {},
      "exit!" => proc { EXIT.call(0) },
      "exec" => proc { EXEC.call("/bin/true") },
      "fork" => proc { WAIT.call(FORK.call {}) }
    }.freeze
    # What the VM calls itself, and what starts a program: without it there is no end that could be looked at.
    OWN = %i[initialize object_id __id__ __send__ instance_exec _fork respond_to_missing? singleton_method_added
             method_added warn]
    scope = owner == "Process" ? Process.singleton_class : Object.const_get(owner)
    names = (scope.instance_methods(false) + scope.private_instance_methods(false)).sort - OWN
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

  %w[Integer String Array Hash Kernel Module Process].each do |owner|
    %w[returns raises].each do |body|
      it "has its profile when it ends (#{owner}, #{body})" do
        script = write_file("program.rb", program)
        alone = run(ruby, script, owner, "end", body)
        expect(alone.status).to be_success, alone.stderr
        ends_alone = children.values
        outcome = rperf("record", "--frequency", "10000", "-m", "wall", "-o", "p.pb.gz", "--", ruby, script, owner, "end", body)
        expect(outcome.status).to be_success, outcome.stderr
        missing = children.except(*profiled_processes(path_to("p.pb.gz")))
        expect(missing.values).to eq([])
        expect(children.values).to eq(ends_alone)
        expect(Dir[path_to("*.err")].map { |path| File.read(path) }.uniq).to eq([""])
      end
    end
  end
end
