# frozen_string_literal: true

# Libraries that the specs have no packages of: their public methods, as rperf meets them.
RSpec.describe "Ops of other libraries", vm: true do
  include OpPrograms

  describe "of Action Mailer" do
    # Mail::Message#deliver (mail 2.8.1) leaves the delivery to the mailer's class, whose event has no values as it
    # begins (ActionMailer::Base.deliver_mail, actionmailer 7.2.2).
    mailer = <<~'RUBY'
      module ActionMailer
        class Base
          class << self
            def deliver_mail(mail)
              mail.events << "begins"
              yield
            ensure
              mail.events << "is over"
            end
          end
        end
      end

      class Message
        attr_reader :events, :handler

        def initialize(handler)
          @handler = handler
          @events = []
        end

        def deliver(&work)
          handler.deliver_mail(self) { (work || -> { sleep 0.01 }).call }
          self
        end
      end

      class UserMailer < ActionMailer::Base; end
      module Shop
        class OrderMailer < ActionMailer::Base
          def self.deliver_mail(mail) = super
        end
      end
    RUBY

    it "have the mailer's class as their name" do
      events = ops_of(<<~RUBY, head: mailer)
        before = Message.new(UserMailer).deliver.events
        inside = nil
        measured do
          2.times { inside = Message.new(UserMailer).deliver.events }
          Message.new(Shop::OrderMailer).deliver
          Message.new(Class.new(ActionMailer::Base)).deliver
          begin
            Message.new(UserMailer).deliver { raise "mine" }
          rescue RuntimeError
            nil
          end
        end
        Message.new(UserMailer).deliver
        puts [before, inside].to_json
      RUBY
      expect(events).to eq([["begins", "is over"]] * 2)
      expect(op_calls).to eq("[mail] UserMailer" => 3, "[mail] Shop::OrderMailer" => 1)
    end
  end

  describe "of Sequel" do
    # Every adapter calls this method of the database around a statement (sequel 5.63); extensions of a database that
    # change the statement come before it.
    sequel = <<~'RUBY'
      module Sequel
        class Database
          def log_connection_yield(_sql, _conn, _args = nil) = yield
          def execute(sql, args = nil, &) = log_connection_yield(sql, :connection, args, &)
        end
      end

      class Adapter < Sequel::Database; end
      DB = Adapter.new.extend(Module.new { def log_connection_yield(sql, conn, args = nil) = super("#{sql} -- s3cr3t", conn, args) })
    RUBY

    it "are its statements" do
      told = ops_of(<<~'RUBY', head: sequel)
        cases = {
          value: -> { DB.execute("SELECT * FROM items WHERE name = 's3cr3t'", ["s3cr3t"]) { 1 } },
          raised: -> { DB.execute("SELECT * FROM items WHERE id = 1") { raise "mine" } },
          odd: -> { DB.log_connection_yield(:sql, nil) { 3 } },
          none: -> { Adapter.new.log_connection_yield }
        }
        puts beside_a_session(cases).to_json
      RUBY
      expect(told.uniq.size).to eq(1)
      expect(op_calls).to include("[SQL] SELECT * FROM items WHERE name = ?" => 1,
                                  "[SQL] SELECT * FROM items WHERE id = ?" => 1)
      expect(bytes_of).not_to include("s3cr3t")
    end
  end
end
