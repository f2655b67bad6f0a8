# Solutions of glmnet for tests/paths/test_glmnet.py: run "Rscript reference.R" in this folder.
#
# It writes data.csv, the data with few digits, so that both languages read the same numbers, and solutions.csv: one row for each
# model, penalty and output, with an intercept and coefficients on the scale of the data. The versions are in its first line.
library(glmnet)

set.seed(1)
n <- 80
X <- cbind(rnorm(n), 5 * rnorm(n), 0.3 * rnorm(n) + 2, rbinom(n, 1, 0.4), rexp(n), rnorm(n))
X[, 6] <- X[, 6] + 0.7 * X[, 1]
score <- 0.8 * X[, 1] - 0.2 * X[, 2] + 1.5 * (X[, 3] - 2) + 0.5 * X[, 4]
data <- data.frame(round(X, 3))
names(data) <- paste0("x", 1:6)
data$weight <- round(runif(n, 0.5, 2), 2)
data$offset <- round(0.3 * rnorm(n), 2)
data$y <- round(10 + 4 * score + 3 * rnorm(n), 2)
data$other <- round(-2 * X[, 1] + X[, 5] + rnorm(n), 2)
data$label <- as.integer(score + rlogis(n) > 0.3)
data$kind <- apply(cbind(score, -score + X[, 5], 0.5) + matrix(-log(-log(runif(3 * n))), n), 1, which.max) - 1
data$count <- rpois(n, exp(0.4 * score + data$offset))
data$time <- round(0.05 + rexp(n, exp(0.7 * score)), 1)  # rounded, so that some are equal
data$event <- rbinom(n, 1, 0.7)
data$time[data$time == 0] <- 0.1
write.csv(data, "data.csv", row.names = FALSE, quote = FALSE)

data <- read.csv("data.csv")
X <- as.matrix(data[, 1:6])
w <- data$weight
factors <- c(1, 2, 0.5, 1, 3, 1.5)
surv <- survival::Surv(data$time, data$event)
both <- as.matrix(data[, c("y", "other")])
rows <- c()

solve <- function(name, y, lambda, ...) {
  fit <- glmnet(X, y, lambda = lambda, thresh = 1e-16, maxit = 1e7, ...)
  found <- if (is.list(coef(fit))) coef(fit) else list(coef(fit))
  for (k in seq_along(found)) for (l in seq_along(lambda)) {
    b <- as.matrix(found[[k]])[, l]
    if (length(b) == 6) b <- c(NaN, b)  # Cox's model has no intercept
    rows <<- c(rows, paste(c(name, sprintf("%.17g", lambda[l]), k - 1, sprintf("%.17g", b)), collapse = ","))
  }
}

two <- c(1, 0.2)
solve("lasso", data$y, two, standardize = FALSE)
solve("lasso-standardized", data$y, two)
solve("lasso-weights", data$y, two, weights = w, standardize = FALSE)
solve("lasso-weights-standardized", data$y, two, weights = w)
solve("lasso-factors", data$y, two, penalty.factor = factors, standardize = FALSE)
solve("lasso-free", data$y, two, penalty.factor = c(0, 1, 1, 1, 1, 1), standardize = FALSE)
solve("lasso-excluded", data$y, two, exclude = c(2, 5), standardize = FALSE)
solve("lasso-no-intercept", data$y, two, intercept = FALSE, standardize = FALSE)
solve("lasso-no-intercept-standardized", data$y, two, intercept = FALSE)
solve("lasso-positive", data$y, two, lower.limits = 0, standardize = FALSE)
solve("net", data$y, two, alpha = 0.6, standardize = FALSE)
solve("net-standardized", data$y, two, alpha = 0.6)
solve("net-weights", data$y, two, alpha = 0.6, weights = w, standardize = FALSE)
few <- c(0.1, 0.02)
solve("logistic", data$label, few, family = "binomial", standardize = FALSE)
solve("logistic-standardized", data$label, few, family = "binomial")
solve("logistic-weights-factors", data$label, few, family = "binomial", weights = w, penalty.factor = factors,
      standardize = FALSE)
solve("logistic-net", data$label, few, alpha = 0.6, family = "binomial", standardize = FALSE)
solve("logistic-net-standardized", data$label, few, alpha = 0.6, family = "binomial")
solve("poisson-offset", data$count, few, family = "poisson", offset = data$offset, standardize = FALSE)
solve("poisson-net-offset", data$count, few, alpha = 0.6, family = "poisson", offset = data$offset, standardize = FALSE)
solve("cox", surv, few, family = "cox", standardize = FALSE)
solve("cox-standardized", surv, few, family = "cox")
solve("cox-weights", surv, few, family = "cox", weights = w, standardize = FALSE)
solve("mgaussian", both, two, family = "mgaussian", standardize = FALSE)
solve("multinomial", data$kind, few, family = "multinomial", standardize = FALSE)
solve("multinomial-grouped", data$kind, few, family = "multinomial", type.multinomial = "grouped", standardize = FALSE)

head <- sprintf("# glmnet %s, survival %s, R %s.%s", packageVersion("glmnet"), packageVersion("survival"), R.version$major,
                R.version$minor)
writeLines(c(head, paste(c("model,lambda,output,intercept", paste0("b", 1:6)), collapse = ","), rows), "solutions.csv")
