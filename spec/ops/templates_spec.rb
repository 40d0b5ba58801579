# frozen_string_literal: true

require "fileutils"

# Templates that are rendered are ops, by their paths.
RSpec.describe "Ops of templates", vm: true do
  include OpPrograms

  def write_views(files)
    files.each do |path, text|
      FileUtils.mkdir_p(File.dirname(path_to(path)))
      write_file(path, text)
    end
  end

  def op_named(name) = Rperf.load(path_to("p.pb.gz")).ops[:ops].find { |it| it[:name] == name }

  describe "of Action View", skip: Servers.missing("actionview") do
    # It needs Nokogiri for what these templates don't use, which Debian builds for another Ruby.
    action_view = <<~'RUBY'
      require "active_support"
      require "active_support/core_ext"
      module Rails
        module HTML; def self.html5_support? = false; end
        Html = HTML
        module HTML4; Sanitizer = Class.new; end
      end
      $LOAD_PATH.unshift(File.realpath("stand_in"))
      require "action_view"

      LOOKUP = ActionView::LookupContext.new([File.realpath("app/views"), File.realpath("gems/pages-1.2.3/app/views")])
      VIEW = ActionView::Base.with_empty_template_cache.new(LOOKUP, {}, nil)
      def render(...) = VIEW.render(...)
    RUBY

    before do
      write_views(
        "stand_in/rails-html-sanitizer.rb" => "",
        "app/views/layouts/site.html.erb" => "<html><%= yield %></html>",
        "app/views/posts/show.html.erb" => "<%= render 'posts/line', line: 0 %> " \
                                           "<%= render partial: 'posts/line', collection: [1, 2], as: :line %>",
        "app/views/posts/_line.html.erb" => "<%= line %>",
        "app/views/posts/work.html.erb" => "<%= work.call %>",
        "gems/pages-1.2.3/app/views/pages/about.html.erb" => "about"
      )
    end

    define_method(:told_of) { |program, *options, **run| ops_of(program, *options, head: action_view, **run) }

    it "have the paths of templates, partials, collections and layouts" do
      pages = told_of(<<~'RUBY')
        pages = []
        measured do
          2.times { pages << render(template: "posts/show", layout: "layouts/site") }
          pages << render(template: "pages/about") << render(inline: "<%= 1 + 1 %>") << render(plain: "text")
        end
        puts JSON.generate(pages)
      RUBY
      expect(pages).to eq([*["<html>0 12</html>"] * 2, "about", "2", "text"])
      expect(op_calls).to eq(
        "[render] app/views/posts/show.html.erb" => 2, "[render] app/views/posts/_line.html.erb" => 4,
        "[render] app/views/layouts/site.html.erb" => 2, "[render] pages-1.2.3/app/views/pages/about.html.erb" => 1,
        "[render] inline template" => 1, "[render] text template" => 1
      )
    end

    it "leave samples to methods, and have no time of the ops inside" do
      told_of(<<~'RUBY')
        busy = lambda do
          ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.1
          nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
        end
        work = lambda do
          busy.call
          Rperf.op("within") { sleep 0.2 }
        end
        measured(frequency: 1000) { render(template: "posts/work", locals: { work: }) }
      RUBY
      name = "[render] app/views/posts/work.html.erb"
      op = op_named(name)
      expect(op[:running_ns]).to be >= 50_000_000
      expect(op[:blocked_ns]).to be < 100_000_000
      expect(op[:wall_ns]).to be >= 299_000_000
      sampled = Rperf.load(path_to("p.pb.gz")).top(by: :op).to_h { |it| it.values_at(:name, :self) }
      expect(sampled["(no op)"]).to be >= 50_000_000
      expect(sampled["[op] within"]).to be_between(150_000_000, 4_000_000_000)
      expect(sampled.keys).not_to include(name)
    end

    it "leave samples to the op around them, and are counted apart" do
      told_of(<<~'RUBY')
        busy = lambda do
          ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.2
          nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
        end
        measured(frequency: 1000) do
          Rperf.op("page") { 2.times { render(template: "posts/work", locals: { work: busy }) } }
        end
      RUBY
      name = "[render] app/views/posts/work.html.erb"
      expect(op_calls).to eq("[op] page" => 1, name => 2)
      page, template = ["[op] page", name].map { |it| op_named(it) }
      expect(template[:wall_ns]).to be >= 399_000_000
      own = page.values_at(:running_ns, :gvl_wait_ns, :blocked_ns, :gc_ns).sum
      expect(own).to be < template[:wall_ns] / 2
      sampled = Rperf.load(path_to("p.pb.gz")).top(by: :op).to_h { |it| it.values_at(:name, :self) }
      expect(sampled["[op] page"]).to be >= 200_000_000
      expect(sampled.keys).not_to include(name)
    end

    it "keep that op with labels that are put on within, and after ops within" do
      told_of(<<~'RUBY')
        busy = lambda do
          ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.1
          nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
        end
        work = lambda do
          Rperf.label(part: "one")
          busy.call
          Rperf.op("within") { sleep 0.05 }
          busy.call
        end
        measured(frequency: 1000) do
          Rperf.op("page") { render(template: "posts/work", locals: { work: }) }
          busy.call
        end
      RUBY
      profile = Rperf.load(path_to("p.pb.gz"))
      sampled = profile.top(by: :op).to_h { |it| it.values_at(:name, :self) }
      expect(sampled["[op] page"]).to be_between(100_000_000, 4_000_000_000)
      expect(sampled["[op] within"]).to be_between(40_000_000, 4_000_000_000)
      expect(sampled["(no op)"]).to be_between(50_000_000, 4_000_000_000)
      labelled = profile.filter(tagfocus: "part=one").top(by: :op).to_h { |it| it.values_at(:name, :self) }
      expect(labelled["[op] page"]).to be >= 100_000_000
      expect(labelled["(no op)"]).to be >= 50_000_000
    end

    it "have no local, no value and no text of a template in any byte of the profile" do
      told_of(<<~'RUBY')
        measured do
          render(template: "posts/work", locals: { work: -> { "s3cr3t" } })
          render(partial: "posts/line", collection: %w[s3cr3t s3cr3t], as: :line)
          render(inline: "s3cr3t <%= token %>", locals: { token: "s3cr3t" })
        end
      RUBY
      expect(op_calls.size).to eq(3)
      expect(bytes_of).not_to include("s3cr3t")
    end

    it "change nothing of what the program gets and raises, and end however they end" do
      alone, inside, after = told_of(<<~'RUBY')
        def work(&work) = render(template: "posts/work", locals: { work: })
        cases = {
          value: -> { work { 1 } },
          raised: -> { work { raise ArgumentError, "mine" } },
          missing: -> { render(template: "posts/none") },
          thrown: -> { catch(:done) { work { throw :done, 3 } } },
          killed: -> { Thread.new { work { Thread.exit } }.join.status },
          nested: -> { work { begin; work { raise "inner" }; rescue ActionView::Template::Error; 4; end } }
        }
        # An op that had stayed open would have this one inside of it.
        told = beside_a_session(cases) { Rperf.op("the next") { sleep 0.02 } }
        puts JSON.generate(told)
      RUBY
      alone, inside, after = [alone, inside, after].map { |it| it.to_h.transform_values { |value| value.first(2) } }
      expect([inside, after]).to eq([alone, alone])
      expect(alone.transform_values(&:first)).to include("raised" => "ActionView::Template::Error",
                                                         "killed" => "returned", "nested" => "returned")
      expect(op_calls).to eq("[render] app/views/posts/work.html.erb" => 6, "[op] the next" => 1)
      expect(op_named("[op] the next")[:blocked_ns]).to be >= 19_000_000
    end

    it "aren't events of the same name with other values, and are none in other sessions" do
      told_of(<<~'RUBY')
        render(template: "pages/about")
        Rperf.start(mode: :wall, output: "q.pb.gz") { render(template: "pages/about") }
        measured do
          [nil, 1, {}, { identifier: nil }, { identifier: :path }].each do |values|
            ActiveSupport::Notifications.instrument("render_partial.action_view", values) { nil }
          end
        end
        render(template: "pages/about")
      RUBY
      expect([op_calls, op_calls("q.pb.gz")]).to eq([{}, {}])
    end
  end

  describe "of Tilt", skip: Servers.missing("tilt") do
    it "have the paths of their files" do
      write_views("views/hello.erb" => "hello <%= name %><%= yield %>")
      told = ops_of(<<~'RUBY')
        require "tilt"
        require "tilt/erb"
        relative, whole = %W[views/hello.erb #{File.realpath("views/hello.erb")}].map { |it| Tilt.new(it) }
        text = Tilt::ERBTemplate.new { "<%= 1 + 1 %>" }
        cases = {
          relative: -> { relative.render(self, name: "you") { "!" } },
          whole: -> { whole.render(Object.new, { name: "you" }) },
          text: -> { text.render },
          raised: -> { relative.render },
          thrown: -> { catch(:done) { relative.render(nil, name: "you") { throw :done, 1 } } }
        }
        puts beside_a_session(cases).to_json
      RUBY
      told.map! { |it| it.to_h.transform_values { |value| value.first(2) } }
      expect(told.uniq.size).to eq(1)
      expect(told.first).to include("relative" => ["returned", "hello you!"], "text" => %w[returned 2],
                                    "raised" => ["NameError", anything])
      expect(op_calls).to eq("[render] views/hello.erb" => 4)
    end

    it "are those of Sinatra's pages and their layout", skip: Servers.missing("sinatra") do
      write_views("views/index.erb" => "<%= name %>", "views/layout.erb" => "[<%= yield %>]")
      told = ops_of(<<~'RUBY', env: { "RACK_ENV" => "production" })
        require "sinatra/base"
        require "rack/mock"
        class Site < Sinatra::Base
          set :views, File.realpath("views")
          set :show_exceptions, false
          get("/") { erb :index, locals: { name: "s3cr3t" } }
          get("/text") { erb "<%= 1 + 1 %>", layout: false }
        end
        get = ->(path) { Rack::MockRequest.new(Site).get(path).body }
        bodies = nil
        measured { bodies = [get.("/"), get.("/"), get.("/text")] }
        puts bodies.to_json
      RUBY
      expect(told).to eq(["[s3cr3t]", "[s3cr3t]", "2"])
      calls = op_calls
      expect(calls).to include("[render] views/index.erb" => 2, "[render] views/layout.erb" => 2)
      # The path that Sinatra gives to text.
      expect(calls.keys).to include(match(%r{\A\[render\] (program|sinatra-[\d.]+/.*)\.rb\z}))
      expect(calls.values.sum).to eq(5)
      expect(bytes_of).not_to include("s3cr3t")
    end
  end
end
