# frozen_string_literal: true

require "active_record"
require "active_record/connection_adapters/abstract_adapter"

# An adapter of Active Record for tables in memory, which waits as long as a database would take. It reads what the
# shop asks, and nothing is written. At its end the program writes the file that ASKED names: how often it was asked.
class TablesAdapter < ActiveRecord::ConnectionAdapters::AbstractAdapter
  ADAPTER_NAME = "Tables"
  class_attribute :tables, instance_accessor: false, default: {}
  @asked = 0
  @counting = Thread::Mutex.new
  at_exit { File.write(ENV["ASKED"], @asked.to_s) if ENV["ASKED"] }

  # In s: an index is used, or each row is looked at.
  QUICK = 0.0002
  SLOW = 0.08
  INDEXED = /"\w+"\."(?<key>\w+)" = (?<value>\d+)/
  DESCRIBED = /\(description LIKE '%(?<word>\w+)%'\)/
  SELECT = /\ASELECT "(?<table>\w+)"\.\* FROM "\w+" WHERE (?:#{INDEXED}|#{DESCRIBED})(?: LIMIT (?<limit>\d+))?\z/
  private_constant :QUICK, :SLOW, :INDEXED, :DESCRIBED, :SELECT

  def self.add(table, rows) = tables[table] = rows
  def self.count = @counting.synchronize { @asked += 1 }
  def self.quote_column_name(name) = %("#{name}")

  def internal_exec_query(sql, name = "SQL", binds = [], **)
    log(sql, name, binds, type_casted_binds(binds)) do |payload|
      rows = rows_of(sql)
      payload[:row_count] = rows.size
      ActiveRecord::Result.new(rows.first&.keys.to_a, rows.map(&:values))
    end
  end

  def columns(table)
    self.class.tables.fetch(table).first.map do |name, value|
      type = value.is_a?(Integer) ? "integer" : "text"
      ActiveRecord::ConnectionAdapters::Column.new(name, nil, fetch_type_metadata(type))
    end
  end

  def data_sources = self.class.tables.keys
  def data_source_exists?(name) = self.class.tables.key?(name)
  def primary_key(_table) = "id"
  def indexes(_table) = []
  def active? = true
  def connect = nil
  def reconnect = nil
  def write_query?(_sql) = false
  def default_prepared_statements = false

  private

  def rows_of(sql)
    self.class.count
    asked = SELECT.match(sql) || raise(ActiveRecord::StatementInvalid, "can't read #{sql}")
    sleep(asked[:word] ? SLOW : QUICK)
    found = asked[:word] ? described(asked) : indexed(asked)
    asked[:limit] ? found.first(asked[:limit].to_i) : found
  end

  def indexed(asked)
    table, key = asked.values_at(:table, :key)
    index = (@indexes ||= {})[[table, key]] ||= self.class.tables.fetch(table).group_by { |row| row[key] }
    index.fetch(asked[:value].to_i, [])
  end

  def described(asked)
    self.class.tables.fetch(asked[:table]).select { |row| row["description"].include?(asked[:word]) }
  end
end

ActiveRecord::ConnectionAdapters.register("tables", "TablesAdapter", __FILE__)
