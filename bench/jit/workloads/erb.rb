# frozen_string_literal: true

# A page from ERB templates that are compiled once, with helpers and a partial.

require "erb"

class Page
  Item = Struct.new(:id, :name, :price, :tags, :stock)

  LAYOUT = <<~HTML
    <!DOCTYPE html>
    <html><head><title><%= h(@title) %></title></head>
    <body class="<%= classes("page", @items.empty? ? nil : "page--full") %>">
    <nav><% %w[start items about].each do |place| %><%= link(place.capitalize, "/" + place, current: place == "items") %>
    <% end %></nav>
    <table>
    <% @items.each_with_index do |item, index| %><%= row(item, index) %><% end %>
    </table>
    <p><%= plural(@items.size, "item") %>, <%= money(@items.sum(&:price)) %></p>
    </body></html>
  HTML
  ROW = <<~'HTML'
    <tr id="item-<%= item.id %>" class="<%= classes("row", index.odd? ? "row--odd" : nil) %>">
      <td><%= link(item.name, "/items/#{item.id}") %></td>
      <td><% if item.stock > 0 %><%= plural(item.stock, "piece") %><% else %><em>sold out</em><% end %></td>
      <td><%= money(item.price) %></td>
      <td><%= item.tags.map { |tag| link(tag, "/tags/" + tag) }.join(", ") %></td>
    </tr>
  HTML

  ERB.new(LAYOUT, trim_mode: "<>").def_method(self, "layout", "layout.erb")
  ERB.new(ROW, trim_mode: "<>").def_method(self, "row(item, index)", "row.erb")

  def initialize(title, items)
    @title = title
    @items = items
  end

  private

  def h(text) = ERB::Util.html_escape(text)

  def link(text, target, current: false)
    %(<a href="#{h(target)}"#{' aria-current="page"' if current}>#{h(text)}</a>)
  end

  def classes(*names) = names.compact.join(" ")

  def plural(count, word) = "#{count} #{word}#{"s" unless count == 1}"

  def money(cents)
    whole, rest = cents.divmod(100)
    "#{whole.to_s.reverse.scan(/\d{1,3}/).join(",").reverse}.#{rest.to_s.rjust(2, "0")}"
  end
end

ITEMS = Array.new(40) do |id|
  Page::Item.new(id, "Nuts & bolts <#{id}>", (id * 7919) % 250_000, %w[small metal new].first(id % 4), id % 5)
end.freeze

WORKLOAD = ->(scale) { (250 * scale).ceil.times { |number| Page.new("Page #{number}", ITEMS).layout } }
