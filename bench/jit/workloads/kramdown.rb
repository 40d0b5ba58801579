# frozen_string_literal: true

# A Markdown page made HTML by kramdown.

require_relative "../../support/gem"
Bench.load_gem("kramdown")

SECTION = <<~MARKDOWN
  ## Section %<number>d

  Text with *emphasis*, **more of it**, `code`, and a [link](https://example.com/%<number>d "title").
  A second line, with a footnote[^%<number>d] and an image: ![a picture](/images/%<number>d.png)

  - a list
  - of several
    1. and a nested one
    2. with numbers
  - items

  > A quotation, which goes on
  > for two lines.

  | name | value |
  |------|------:|
  | one  | %<number>d |
  | two  | 2 |

  ```ruby
  def method_%<number>d(argument) = argument.map { |it| it + 1 }
  ```

  [^%<number>d]: The footnote's text.

MARKDOWN
TEXT = Array.new(8) { |number| format(SECTION, number:) }.join.freeze

WORKLOAD = ->(scale) { (20 * scale).ceil.times { Kramdown::Document.new(TEXT).to_html } }
