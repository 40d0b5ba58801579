# frozen_string_literal: true

# A page from a Liquid template, which Liquid interprets.

require_relative "../../support/gem"
Bench.load_gem("liquid")

TEMPLATE = Liquid::Template.parse(<<~LIQUID)
  <h1>{{ title | escape | upcase }}</h1>
  {% for item in items %}
    {% if item.stock > 0 and item.price < 2000 %}
      <li class="{% cycle 'odd', 'even' %}">{{ forloop.index }}: {{ item.name | escape | truncate: 20 }},
      {{ item.price | divided_by: 100.0 | round: 2 }}
      {% for tag in item.tags %}<a href="/tags/{{ tag | url_encode }}">{{ tag | capitalize }}</a>{% endfor %}</li>
    {% else %}
      {% assign left = left | plus: 1 %}
    {% endif %}
  {% endfor %}
  <p>{{ items | map: "name" | join: ", " | size }} letters, {{ left }} left out</p>
LIQUID
ITEMS = Array.new(40) do |id|
  { "name" => "Nuts & bolts <#{id}>", "price" => (id * 7919) % 3000, "tags" => %w[small metal new].first(id % 4),
    "stock" => id % 5 }
end.freeze

WORKLOAD = lambda do |scale|
  (60 * scale).ceil.times { |number| TEMPLATE.render!({ "title" => "Page #{number}", "items" => ITEMS, "left" => 0 }) }
end
