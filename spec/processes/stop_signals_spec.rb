# frozen_string_literal: true

# A handler runs wherever the program releases the GVL, as it does while profiles are merged.
RSpec.describe "A program that ends a session of several processes", vm: true do
  it "has the profile of all, though a handler raises something as it does" do
    write_file("app.rb", <<~'RUBY')
      trap(:USR1) { raise "handled" }
      20.times do |round|
        Rperf.start(inherit: :fork, output: "#{round}.pb.gz")
        Array.new(8) { fork { 1_000.times { round.to_s } } }.each { |child| Process.wait(child) }
        begin
          delay = round / 2_000.0
          sender = Thread.new { sleep(delay); Process.kill(:USR1, Process.pid) }
          Rperf.stop
          sender.join
        rescue RuntimeError => e
          puts e.message
        end
        begin
          sender.join
        rescue RuntimeError => e
          puts e.message
        end
      end
    RUBY
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "app.rb")
    expect([outcome.stdout, outcome.stderr]).to eq(["handled\n" * 20, ""])
    processes = Array.new(20) do |round|
      read_profile(path_to("#{round}.pb.gz"))[:label_sets].filter_map { |set| set[:"%pid"] }.uniq.size
    end
    expect(processes).to eq([9] * 20)
  end
end
