# frozen_string_literal: true

# The unit of docs/guide/production.md, step by step: its environment, its directory, and the command beside it.
RSpec.describe "The service of the guide", vm: true do
  unit = File.read(File.join(Commands::ROOT, "docs/guide/production.md"))[/^\[Service\]\n(.*?)^```/m, 1]
             .lines(chomp: true).map { |line| line.split("=", 2) }

  def value(unit, name) = unit.assoc(name).fetch(1)

  it "has a port in its directory, which the command finds" do
    variable, place = value(unit, "Environment").split("=", 2)
    expect(place).to eq("/run/#{value(unit, "RuntimeDirectory")}")
    directory = path_to("run")
    Dir.mkdir(directory, Integer(value(unit, "RuntimeDirectoryMode"), 8))
    program = "puts 'ready'; $stdout.flush; $stdin.read"
    reader, writer = IO.pipe
    pid = Process.spawn({ variable => directory }, ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", program,
                        in: reader, out: File::NULL)
    wait_until("a socket") { Dir[File.join(directory, "#{pid}-*.sock")].any? }
    expect(rperf("ps").stdout).to match(/^#{pid} /)
    expect(rperf("stacks", pid.to_s).stdout).to include("IO#read")
  ensure
    [reader, writer].compact.each(&:close)
    Process.wait(pid) if pid
  end
end
