# frozen_string_literal: true

# Reads orders, leaves out those of blocked customers, and makes a bill for each
# country, which it then sends off.
#
#   bin/rperf record -m wall ruby examples/orders.rb
#   bin/rperf report
#
# What to look for: docs/guide/tutorial.md goes through it. Blocklist#blocked? takes
# most of the time, as it looks through an Array for each order. With --set it looks
# into a Set:
#
#   bin/rperf record -m wall -o set.data ruby examples/orders.rb --set
#   bin/rperf diff rperf.data set.data

require "digest"

Order = Struct.new(:id, :customer, :country, :price)

# Customers whose orders are left out.
class Blocklist
  def initialize(customers)
    @customers = customers
  end

  def blocked?(customer)
    @customers.include?(customer)
  end
end

# Lines of text, from which orders are read.
class Import
  COUNTRIES = %w[AT CH CZ DE DK FR IT NL PL SE].freeze

  def initialize(count)
    @lines = Array.new(count) do |number|
      format("%<number>d;C%<customer>05d;%<country>s;%<price>.2f", number:, customer: (number * 7919) % 9973,
                                                                   country: COUNTRIES[number % 10], price: number % 97)
    end
  end

  def orders = @lines.map { |line| parse(line) }

  private

  def parse(line)
    id, customer, country, price = line.split(";")
    Order.new(Integer(id), customer, country, Float(price))
  end
end

# The debts of a country's customers.
class Bill
  def initialize(country, orders)
    @country = country
    @orders = orders
  end

  def text
    lines = @orders.map { |order| line(order) }
    "#{@country}: #{lines.size} orders, #{format("%.2f", total)}, #{Digest::SHA256.hexdigest(lines.join)}"
  end

  private

  def line(order) = format("%<id>08d %<customer>s %<price>10.2f\n", order.to_h)

  def total = @orders.sum(&:price)
end

# Stands for a service that takes its time.
def send_off(text)
  sleep 0.02
  text.bytesize
end

blocked = Array.new(1000) { |number| format("C%05d", number * 9) }
blocklist = Blocklist.new(ARGV.include?("--set") ? blocked.to_set : blocked)
orders = Import.new(30_000).orders.reject { |order| blocklist.blocked?(order.customer) }
bills = orders.group_by(&:country).map { |country, list| Bill.new(country, list).text }
sizes = bills.map { |bill| send_off(bill) }
puts "#{orders.size} orders, #{sizes.sum} bytes"
