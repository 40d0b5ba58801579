# frozen_string_literal: true

class News
  # Letters to the editor, of which readers are told when they are printed.
  module Letters
    @printed = []

    class << self
      def page(reader)
        draft = lines(reader)
        on_print { |issue| puts "#{draft.first} is in issue #{issue}" }
        "<p>#{draft.size} lines, thank you!</p>"
      end

      # To be run as soon as the letter is printed.
      def on_print(&block) = @printed << block

      private

      def lines(reader)
        Array.new(70) { |n| "Line #{n} of a letter that reader #{reader} has sent us, with a remark or two" }
      end
    end
  end
end
