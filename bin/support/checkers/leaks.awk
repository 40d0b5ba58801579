# Prints the leaks in reports of LeakSanitizer that come through code in certain files (-v whose=EXPRESSION) again and
# again: of more than 20 blocks. What is made once in a process stays, and so does what Ruby keeps to its end.
function judge() {
  if (ours && blocks > 20) print text
  ours = blocks = 0
  text = ""
}
/^(Direct|Indirect) leak of / {
  judge()
  text = $0
  if (match($0, /in [0-9]+ object/)) blocks = substr($0, RSTART + 3, RLENGTH - 10) + 0
  next
}
text != "" && /^ +#[0-9]+ / { text = text "\n" $0 }
text != "" && $0 ~ whose { ours = 1 }
/^$/ || /^SUMMARY/ { judge() }
END { judge() }
