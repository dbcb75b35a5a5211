# What low rank costs, from a study's rows.csv with base R: the median inflation of each target, n and rank
# as a table, and against n/d as a figure.
#
#     Rscript with_r.R data/logit-growth inflation.png

given <- commandArgs(trailingOnly = TRUE)
study <- if (length(given) >= 1) given[1] else "data/logit-growth"
picture <- if (length(given) >= 2) given[2] else "inflation.png"

# Over the seeds whose fit reached its error.
rows <- read.csv(file.path(study, "rows.csv"), na.strings = "", encoding = "UTF-8")
reached <- is.na(rows$err) & rows$outcome %in% c("converged", "step-limit") &
  rows$kl_nats <= 1.01 * rows$tolerance & !is.na(rows$inflation)
rows <- rows[which(reached), ]
if (nrow(rows) == 0) stop(study, ": no fit that reached a tolerance")
cells <- aggregate(inflation ~ target + n + rank, rows, median)
counts <- aggregate(inflation ~ target + n + rank, rows, length)
cells$seeds <- counts$inflation
# By code point, whatever the locale.
cells <- cells[order(cells$target, cells$n, cells$rank, method = "radix"), ]

cat("target,n,rank,inflation,seeds\n")
cat(sprintf('"%s",%d,%d,%.6g,%d\n', cells$target, cells$n, cells$rank, cells$inflation,
            cells$seeds), sep = "")

targets <- unique(cells$target)
ranks <- sort(unique(cells$rank))
colours <- hcl.colors(length(ranks) + 1, "viridis")
png(picture, width = 150 + 420 * length(targets), height = 510, res = 130)
par(mfrow = c(1, length(targets)), mar = c(4, 4, 2, 0.5), cex.main = 0.8)
for (target in targets) {
  panel <- cells[cells$target == target, ]
  plot(NULL, log = "xy", xlim = range(cells$n / cells$rank), ylim = range(cells$inflation),
       xlab = "n/d", ylab = "inflation", main = target)
  for (at in seq_along(ranks)) {
    line <- panel[panel$rank == ranks[at], ]
    lines(line$n / line$rank, line$inflation, type = "o", pch = at, col = colours[at])
  }
  legend("topleft", paste("rank", ranks), col = colours, pch = seq_along(ranks), lty = 1, bty = "n",
         cex = 0.8)
}
invisible(dev.off())
